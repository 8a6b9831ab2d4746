// What every store forgets, and when: history, and the rows of what was deleted.
import assert from "node:assert/strict";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { kindNames } from "../../src/kinds/kinds.ts";
import type { Store } from "../../src/server/store.ts";
import {
  deployment,
  type Holds,
  historyLines,
  policy,
  reportOf,
  type StateInit,
  sentinel,
  stateAt,
} from "./store-fixtures.ts";

const author = { by: "ann", atMs: 1_700_000_000_000 };
const ageMaxMs = 1_000;
const trimAt = (store: Store, nowMs: number) => store.trimHistory({ ageMaxMs, entriesMax: 1_000 }, nowMs);
const left = async (store: Store, region: string) => {
  const rows = await Promise.all(kindNames.map((kind) => store.rows(region, kind)));
  return rows.flat().map(({ id }) => id);
};
const gone = { exists: false, instances: [], atMs: 1 };
/** All three controllers have come as far, of an agent that calls for as long as the test looks. */
const settle = (store: Store, region: string, cursor: bigint, init: StateInit = {}, atMs = 1_000_000) => {
  const controllers = ["deployments", "sentinels", "cilium"].map((name) => ({ name, stream: { cursor } }));
  return store.reportAgent(region, stateAt(atMs, { state: { instanceId: "ins_1", controllers }, ...init }));
};

export function defineRetentionContract(holds: Holds): void {
  history(holds);
  goneObjects(holds);
  agentsWord(holds);
}

function history(holds: Holds): void {
  holds(
    "a report that says nothing new is no news when the entry of the last one is forgotten",
    async (open) => {
      const { store, region } = open;
      await store.put(region, "deployment", deployment("a"), author);
      const report = (atMs: number) =>
        store.report(region, "deployment", { name: "app-a", id: "" }, { exists: true, instances: [], atMs });
      await report(1_000);
      await store.trimHistory({ ageMaxMs: 1_000, entriesMax: 1_000 }, author.atMs + 2_000);
      await report(author.atMs + 3_000);
      assert.deepEqual(await historyLines(store, region), []);
    },
  );
}

function goneObjects(holds: Holds): void {
  holds("an object that was deleted is forgotten once it has been gone for long", async (open) => {
    const { store, other, region } = open;
    const names = { deployment: ["reported", "settled", "kept"], sentinel: ["s"], policy: ["p"] } as const;
    for (const id of names.deployment) await store.put(region, "deployment", deployment(id), author);
    await store.put(region, "sentinel", sentinel("s"), author);
    await store.put(region, "policy", policy("p", "one"), author);
    for (const id of ["reported", "settled"]) await store.stop(region, "deployment", id, author);
    await store.stop(region, "sentinel", "s", author);
    await store.stop(region, "policy", "p", author);
    await trimAt(store, 10_000);
    await trimAt(store, 20_000);
    assert.equal((await left(store, region)).length, 5, "no agent has heard of the order");
    await store.report(region, "deployment", { name: "app-reported", id: "" }, gone);
    await settle(store, region, 9n);
    await trimAt(store, 30_000);
    await trimAt(other, 31_000);
    assert.equal((await left(store, region)).length, 5, "not long enough");
    await trimAt(store, 31_001);
    assert.deepEqual(await left(store, region), ["kept"]);
    assert.equal(await reportOf(store, region, "deployment", "reported"), undefined);
    const second = deployment("other", { k8sName: "app-reported" });
    assert.equal(await store.put(region, "deployment", second, author), 10n, "its name is free");
  });

  holds("an object of which something may be left is not forgotten", async ({ store, region }) => {
    const ids = ["there", "refused", "late"];
    for (const id of ids) {
      await store.put(region, "deployment", deployment(id), author);
      await store.stop(region, "deployment", id, author);
    }
    await store.report(region, "deployment", { name: "app-there", id: "" }, { ...gone, exists: true });
    const refused = {
      controller: "deployments",
      id: "refused",
      desiredVersion: 4n,
      outcome: Outcome.CONFLICT,
    };
    await settle(store, region, 5n, { troubledObjects: [refused] });
    await trimAt(store, 10_000);
    await trimAt(store, 20_000);
    assert.deepEqual(await left(store, region), ids);
    const full = Array.from({ length: 100 }, (_, index) => ({ ...refused, id: `x${index}` }));
    await settle(store, region, 6n, { troubledObjects: full });
    await trimAt(store, 30_000);
    await trimAt(store, 40_000);
    assert.deepEqual(await left(store, region), ids, "it may be among those that did not fit");
  });

  holds("the time of one that came back, or was wanted again, starts again", async ({ store, region }) => {
    for (const id of ["again", "wanted"]) {
      await store.put(region, "deployment", deployment(id), author);
      await store.stop(region, "deployment", id, author);
      await store.report(region, "deployment", { name: `app-${id}`, id: "" }, gone);
    }
    await trimAt(store, 10_000);
    await store.report(region, "deployment", { name: "app-again", id: "" }, { ...gone, exists: true });
    await store.put(region, "deployment", deployment("wanted"), author);
    await trimAt(store, 20_000);
    await store.report(region, "deployment", { name: "app-again", id: "" }, gone);
    await store.stop(region, "deployment", "wanted", author);
    await store.report(region, "deployment", { name: "app-wanted", id: "" }, gone);
    await trimAt(store, 30_000);
    assert.deepEqual(await left(store, region), ["again", "wanted"]);
    await trimAt(store, 40_000);
    assert.deepEqual(await left(store, region), []);
  });
}

/** What the agent has to say before anything is forgotten. */
function agentsWord(holds: Holds): void {
  holds("a deployment that is reported gone and still in trouble is not forgotten", async (open) => {
    const { store, region } = open;
    await store.put(region, "deployment", deployment("a"), author);
    await store.stop(region, "deployment", "a", author);
    await store.report(region, "deployment", { name: "app-a", id: "" }, gone);
    const stuck = {
      controller: "deployments",
      key: "one/app-a",
      desiredVersion: 2n,
      outcome: Outcome.RETRYING,
      reason: "its network policy cannot be deleted",
    };
    await settle(store, region, 1n, { troubledObjects: [stuck] });
    for (const nowMs of [10_000, 20_000]) await trimAt(store, nowMs);
    assert.deepEqual(await left(store, region), ["a"]);
    await settle(store, region, 2n);
    for (const nowMs of [30_000, 40_000]) await trimAt(store, nowMs);
    assert.deepEqual(await left(store, region), []);
  });

  holds(
    "an agent of another life of the control plane makes nothing forgotten",
    async ({ store, region }) => {
      await store.put(region, "deployment", deployment("a"), author);
      await store.stop(region, "deployment", "a", author);
      await store.report(region, "deployment", { name: "app-a", id: "" }, gone);
      // In that life it may have been wanted again.
      await settle(store, region, 9n);
      for (const nowMs of [10_000, 20_000]) await trimAt(store, nowMs);
      assert.deepEqual(await left(store, region), ["a"]);
    },
  );

  holds("a deletion is forgotten only after a restarted agent has applied it itself", async (open) => {
    const { store, region } = open;
    await store.put(region, "sentinel", sentinel("s"), author);
    await store.stop(region, "sentinel", "s", author);
    await settle(store, region, 2n);
    await trimAt(store, 10_000);
    // Of a cluster that was restored, say: what is in it now is not what the one before left.
    await settle(store, region, 0n, { state: { instanceId: "ins_2" } });
    await trimAt(store, 20_000);
    assert.deepEqual(await left(store, region), ["s"]);
    await settle(store, region, 2n);
    await trimAt(store, 30_000);
    assert.deepEqual(await left(store, region), ["s"], "its time starts again");
    await trimAt(store, 40_000);
    assert.deepEqual(await left(store, region), []);
  });

  holds("while the agent is silent, nothing is forgotten", async (open) => {
    const { store, other, region } = open;
    await store.put(region, "policy", policy("p", "one"), author);
    await store.stop(region, "policy", "p", author);
    await settle(store, region, 2n, {}, 10_000);
    await trimAt(store, 10_000);
    // As the first look of a server on a database that was restored: the agent may have come further than this.
    await trimAt(other, 90_000);
    assert.deepEqual(await left(store, region), ["p"]);
    await settle(store, region, 2n, {}, 90_001);
    await trimAt(other, 90_002);
    assert.deepEqual(await left(store, region), []);
  });
}
