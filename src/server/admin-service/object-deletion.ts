// The call that orders a deletion. The policies of a deployment go with it, each as a change
// of its own: a call that fails in between is made again, and does the rest.
import type { DeleteObjectRequest } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Kind } from "../kinds.ts";
import { stopping } from "../row-rules.ts";
import { type Author, type Row, type Store, StoreError } from "../store.ts";
import { conditionOf, notFound } from "./object-changes.ts";
import { type ParsedRef, parseRef } from "./object-refs.ts";

export async function deleteObject(store: Store, request: DeleteObjectRequest, author: Author) {
  const ref = parseRef(request.ref);
  const { region, kind, id } = ref;
  const condition = conditionOf(request);
  // The version of one that is stopped already is that of the order, which whoever repeats it cannot know.
  const decide = (row: Row<Kind> | undefined) =>
    stopping(kind, row?.desired === "stopped" ? {} : condition)(row);
  const { after } = await store.change(region, kind, id, decide, author);
  if (after === undefined) throw notFound(ref);
  if (kind === "deployment") await stopPolicies(store, ref, after.version, author);
  return { version: after.version };
}

/**
 * Whoever wants the deployment again meanwhile wants its policies too: those that are newer than the order are left
 * alone, and all of them once the deployment is not as the order left it.
 */
async function stopPolicies(
  store: Store,
  { region, id }: ParsedRef,
  stoppedAt: bigint,
  author: Author,
): Promise<void> {
  const belongs = (row: Row<"policy">) =>
    row.deploymentId === id && row.desired === "running" && row.version < stoppedAt;
  for (const policy of (await store.rows(region, "policy")).filter(belongs)) {
    const deployment = await store.row(region, "deployment", id);
    if (deployment?.version !== stoppedAt) return;
    const { version: expectedVersion } = policy;
    await store.stop(region, "policy", policy.id, author, { expectedVersion }).catch(unlessChanged);
  }
}

function unlessChanged(error: unknown): void {
  if (!(error instanceof StoreError && error.code === "version_mismatch")) throw error;
}
