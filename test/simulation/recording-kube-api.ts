// A KubeApi that remembers what was written, for tests that count writes. A dry run writes nothing.
import type { KubeApi } from "../../src/kube/api.ts";
import { objectKey } from "../../src/kube/object-cache.ts";
import type { KubeObject, ObjectRef } from "../../src/kube/types.ts";

export interface RecordedWrite {
  readonly verb: "apply" | "patch" | "delete" | "create";
  readonly kind: string;
  readonly key: string;
  readonly manifest: KubeObject | undefined;
}

/** Without the Events that tell of them. */
export function withoutEvents(writes: readonly RecordedWrite[]): readonly RecordedWrite[] {
  return writes.filter(({ kind }) => kind !== "Event");
}

export interface RecordingKubeApi extends KubeApi {
  readonly writes: RecordedWrite[];
}

export function createRecordingKubeApi(api: KubeApi): RecordingKubeApi {
  const writes: RecordedWrite[] = [];
  const note = (verb: RecordedWrite["verb"], kind: string, ref: ObjectRef, manifest?: KubeObject) =>
    void writes.push({ verb, kind, key: objectKey(ref), manifest });
  return {
    ...api,
    writes,
    apply(kind, manifest, options, signal) {
      if (!options.dryRun) note("apply", kind.kind, refOf(manifest), manifest);
      return api.apply(kind, manifest, options, signal);
    },
    patch(kind, object, operations, options, signal) {
      if (!options.dryRun) note("patch", kind.kind, refOf(object));
      return api.patch(kind, object, operations, options, signal);
    },
    create(kind, object, options, signal) {
      note("create", kind.kind, refOf(object), object);
      return api.create(kind, object, options, signal);
    },
    delete(kind, ref, options, signal) {
      note("delete", kind.kind, ref);
      return api.delete(kind, ref, options, signal);
    },
  };
}

function refOf({ metadata }: KubeObject): ObjectRef {
  const name = metadata?.name ?? "";
  return metadata?.namespace === undefined ? { name } : { name, namespace: metadata.namespace };
}
