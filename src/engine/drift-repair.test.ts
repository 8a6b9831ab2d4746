import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeApi } from "../kube/api.ts";
import { replicaSets } from "../kube/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import { DriftRepair } from "./drift-repair.ts";
import type { OwnedObject } from "./plan.ts";

const { signal } = new AbortController();

function live(manager: string, list: readonly string[], resourceVersion = "1"): KubeObject {
  const managedFields = [{ manager, operation: "Update" }];
  const metadata = { name: "web", namespace: "acme", uid: "u", resourceVersion, managedFields };
  return { metadata, spec: { list } } as KubeObject;
}

/** Names the drift by who has it in managedFields, as for a list that is written as a whole. */
function listObject(): OwnedObject {
  const manifest = { metadata: { name: "web", namespace: "acme" }, spec: { list: ["a"] } };
  return {
    kind: replicaSets,
    ref: { namespace: "acme", name: "web" },
    manifest: () => manifest,
    driftOf: (object: KubeObject) => {
      const { spec, metadata } = object as KubeObject & { spec: { list: readonly string[] } };
      if (spec.list.length === 1) return [];
      const path = metadata?.managedFields?.[0]?.manager === "krane" ? "spec.list" : "spec.list[1]";
      return [{ path, pointer: "/spec/list", value: spec.list, wanted: ["a"], isUnknownDefault: false }];
    },
    wrote: () => undefined,
  } as unknown as OwnedObject;
}

async function clean(outlook: KubeObject) {
  const sent: boolean[] = [];
  const api = {
    patch: async (_kind: unknown, _object: unknown, _operations: unknown, { dryRun = false }) => {
      sent.push(dryRun);
      return outlook;
    },
  } as unknown as KubeApi;
  const repair = new DriftRepair({ api, onRepair: () => undefined });
  const object = listObject();
  return { sent, cleaned: await repair.clean(object, live("someone", ["a", "b"]), signal) };
}

test("a patch that would only change managedFields is not sent", async () => {
  const { sent, cleaned } = await clean(live("krane", ["a", "b"], "2"));
  assert.deepEqual(sent, [true]);
  assert.equal(cleaned.writes, 0);
  assert.deepEqual(
    cleaned.left.map(({ path }) => path),
    ["spec.list[1]"],
  );
});

test("a patch that changes the content is sent", async () => {
  const { sent, cleaned } = await clean(live("krane", ["a"], "2"));
  assert.deepEqual(sent, [true, false]);
  assert.deepEqual([cleaned.writes, cleaned.left], [1, []]);
});
