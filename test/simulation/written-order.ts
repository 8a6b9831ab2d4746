// What an agent wrote, by the tag that every image of a script carries: the number of the order it comes from.
import assert from "node:assert/strict";
import type { SimulatedAgent } from "./simulated-region.ts";

/** No object goes back to an older order than the one it had (K3). */
export function assertInOrder(writes: SimulatedAgent["writes"]): void {
  const newest = new Map<string, number>();
  for (const { kind, key, manifest } of writes) {
    if (kind !== "ReplicaSet" || manifest === undefined) continue;
    const tag = Number(/"registry\.example\/acme\/web:(\d+)"/.exec(JSON.stringify(manifest))?.[1]);
    assert.ok(tag >= (newest.get(key) ?? 0), `${key} went back to ${tag}`);
    newest.set(key, tag);
  }
}
