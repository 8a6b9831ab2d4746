// Whether drift is seen by content, on whichever API server: shared by the test of the embedded one and
// that of the real one.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { appliedContentHash, manifestContentHash } from "../../src/engine/applied-content.ts";
import { findMovedItems } from "../../src/engine/drift-repair.ts";
import { createKubeApi, objectPath } from "../../src/kube/client.ts";
import { ciliumNetworkPolicies, replicaSets } from "../../src/kube/resources.ts";
import type { KubeTransport } from "../../src/kube/transport.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { eventually } from "./eventually.ts";
import { handEdits, putObject, valueAt } from "./hand-edits.ts";

const folder = new URL("../../testdata/deployment/", import.meta.url);
const kinds: Readonly<Record<string, ResourceKind>> = {
  ReplicaSet: replicaSets,
  CiliumNetworkPolicy: ciliumNetworkPolicies,
};

export interface GoldenManifest {
  readonly name: string;
  readonly kind: ResourceKind;
  readonly manifest: KubeObject;
}

/** What krane sends and watches, of every golden case, moved into one namespace. */
export function goldenManifests(namespace: string): readonly GoldenManifest[] {
  return readdirSync(folder).flatMap((name) => {
    const text = readFileSync(new URL(`${name}/manifests.json`, folder), "utf8");
    const manifests = JSON.parse(text) as readonly KubeObject[];
    return manifests.flatMap((manifest) => {
      const kind = kinds[manifest.kind ?? ""];
      const moved = { ...manifest, metadata: { ...manifest.metadata, namespace } };
      return kind === undefined ? [] : [{ name: `${kind.kind} of ${name}`, kind, manifest: moved }];
    });
  });
}

/** What is live has the hash of what was sent, also when it is read again. */
export async function checkContentOf(transport: KubeTransport, golden: GoldenManifest, signal: AbortSignal) {
  const api = createKubeApi(transport);
  const { kind, manifest } = golden;
  const sent = manifestContentHash(manifest);
  const { object } = await api.apply(kind, manifest, { fieldManager: "krane", force: true }, signal);
  assert.equal(appliedContentHash(object), sent, golden.name);
  const ref = { namespace: manifest.metadata?.namespace ?? "", name: manifest.metadata?.name ?? "" };
  const read = await api.get(kind, ref, {}, signal);
  assert.equal(read && appliedContentHash(read), sent, `${golden.name}, read again`);
}

/** Every edit that the server accepts is seen, and undone by one apply. Returns how many there were. */
export async function checkEditsOf(transport: KubeTransport, golden: GoldenManifest, signal: AbortSignal) {
  const api = createKubeApi(transport);
  const { kind, manifest } = golden;
  const ref = { namespace: manifest.metadata?.namespace ?? "", name: manifest.metadata?.name ?? "" };
  const sent = manifestContentHash(manifest);
  const options = { fieldManager: "krane", force: true };
  let live = (await api.apply(kind, manifest, options, signal)).object;
  const names = [...handEdits(manifest, live)].map(({ name }) => name);
  let accepted = 0;
  for (const name of names) {
    const edit = [...handEdits(manifest, live)].find((one) => one.name === name);
    assert.ok(edit, `${golden.name}: ${name} cannot be made`);
    const answer = await putObject(transport, objectPath(kind, ref), edit.object, signal);
    if (answer === undefined || isDeepStrictEqual(valueAt(answer, edit.path), valueAt(live, edit.path)))
      continue;
    accepted += 1;
    assert.notEqual(appliedContentHash(answer), sent, `${golden.name}: ${name} is not seen`);
    // A changed key of a list item is another item, which is somebody else's and stays. Only beside a port
    // can ours not be put back, for the two would have one name; that one is moved back first.
    if (/ports\.\d+\.containerPort changed/.test(name)) {
      await assert.rejects(api.apply(kind, manifest, options, signal), { status: 422 }, name);
      // Controllers write the status meanwhile, and the patch is bound to what was read.
      await eventually("it is moved back", async () => {
        const now = (await api.get(kind, ref, {}, signal)) ?? assert.fail("it is gone");
        await api.patch(kind, now, findMovedItems(manifest, now), options, signal);
      });
    }
    const repaired = await api.apply(kind, manifest, options, signal);
    assert.equal(appliedContentHash(repaired.object), sent, `${golden.name}: ${name} is not undone`);
    await api.delete(kind, ref, { propagation: "Background" }, signal);
    live = (await api.apply(kind, manifest, options, signal)).object;
  }
  return accepted;
}
