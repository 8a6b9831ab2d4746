// What every store does for sets: an object is in one set at most, and in none once it is deleted.
import assert from "node:assert/strict";
import type { SetMember } from "../../src/server/sets.ts";
import { deployment, type Holds, hasCode, policy } from "./store-fixtures.ts";

const author = { by: "ann", atMs: 1_700_000_000_000 };
const content = { workspaceId: "ws", projectId: "p", secrets: new Map() };
const of = (kind: SetMember["kind"], id: string): SetMember => ({ kind, id });

export function defineSetContract(holds: Holds): void {
  holds("a set has what joined it and is desired, in one order", async ({ store, other, region }) => {
    for (const id of ["b", "a", "stopped"]) await store.put(region, "deployment", deployment(id), author);
    await store.stop(region, "deployment", "stopped", author);
    await store.changeEnvironment(region, "a", () => content, author);
    const all = ["b", "a", "stopped", "missing"].map((id) => of("deployment", id));
    await store.sets.join(region, "web", [...all, of("environment", "a"), of("app", "a")]);
    await other.sets.join(region, "web", [of("deployment", "a"), of("deployment", "a")]);
    const expected = [of("deployment", "a"), of("deployment", "b"), of("environment", "a")];
    assert.deepEqual(await other.sets.members(region, "web"), expected);
    assert.deepEqual(await store.sets.members(region, "other"), []);
  });

  holds("an object that joins another set leaves its own", async ({ store, region }) => {
    for (const id of ["a", "b"]) await store.put(region, "deployment", deployment(id), author);
    await store.sets.join(region, "web", [of("deployment", "a"), of("deployment", "b")]);
    await store.sets.join(region, "api", [of("deployment", "b")]);
    assert.deepEqual(await store.sets.members(region, "web"), [of("deployment", "a")]);
    assert.deepEqual(await store.sets.members(region, "api"), [of("deployment", "b")]);
  });

  holds("what is deleted leaves its set, and is not in it when it is created again", async (open) => {
    const { store, other, region } = open;
    await store.put(region, "deployment", deployment("a"), author);
    await store.put(region, "policy", policy("p", "one"), author, { deploymentId: "a" });
    await store.changeEnvironment(region, "e", () => content, author);
    const members = [of("deployment", "a"), of("environment", "e"), of("policy", "p")];
    await store.sets.join(region, "web", members);
    assert.deepEqual(await other.sets.members(region, "web"), members);
    await other.change(region, "deployment", "a", stopped, author, { withOwned: true });
    await other.removeEnvironment(region, "e", author);
    assert.deepEqual(await store.sets.members(region, "web"), []);
    await store.put(region, "deployment", deployment("a"), author);
    assert.deepEqual(await store.sets.members(region, "web"), []);
  });

  holds("a set of an unknown region is refused", async ({ store }) => {
    await assert.rejects(store.sets.join("nowhere.test", "web", []), hasCode("unknown_region"));
    await assert.rejects(store.sets.members("nowhere.test", "web"), hasCode("unknown_region"));
  });
}

const stopped = () => ({ spec: deployment("a"), desired: "stopped" }) as const;
