// Follows objects through a watch that misses no state, also while the API server ends watches.
import type { TestContext } from "node:test";
import type { KubeApi } from "../../src/kube/api.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";

/** Calls back with every state of every object, from the present ones on, until the test ends. */
export function followStates<T extends KubeObject>(
  t: TestContext,
  api: Pick<KubeApi, "watch">,
  { kind, namespace }: { readonly kind: ResourceKind<T>; readonly namespace: string },
  onState: (object: T, isDeleted: boolean) => void,
): void {
  const stopping = new AbortController();
  const follow = async () => {
    let resourceVersion: string | undefined;
    for (;;) {
      const options = { namespace, bookmarks: true, ...(resourceVersion && { resourceVersion }) };
      for await (const event of api.watch(kind, options, stopping.signal)) {
        resourceVersion =
          event.type === "BOOKMARK" ? event.resourceVersion : event.object.metadata?.resourceVersion;
        if (event.type !== "BOOKMARK") onState(event.object, event.type === "DELETED");
      }
    }
  };
  const following = follow().catch((error: unknown) => {
    // Without it the test would see nothing that goes wrong.
    if (!stopping.signal.aborted) throw error;
  });
  t.after(() => {
    stopping.abort();
    return following;
  });
}
