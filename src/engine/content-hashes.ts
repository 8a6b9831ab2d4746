// The content hash of what a spec becomes, for as long as the spec lives. A manifest is large and its hash is short;
// a manifest lives only as long as the plan that sends it.
import type { KubeObject } from "../kube/types.ts";
import { manifestContentHash } from "./applied-content.ts";

export class ContentHashes<Spec extends object> {
  private readonly known = new WeakMap<Spec, string>();

  of(spec: Spec, manifest: () => KubeObject): string {
    const known = this.known.get(spec);
    if (known !== undefined) return known;
    const hash = manifestContentHash(manifest());
    this.known.set(spec, hash);
    return hash;
  }
}
