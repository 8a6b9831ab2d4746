// What every store does for the admin API: changes with a condition, pages, environments,
// releases, and a history that can be followed.
import assert from "node:assert/strict";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { stopping } from "../../src/server/row-rules.ts";
import type { NumberedEntry, Store, StrangerRef } from "../../src/server/store.ts";
import {
  deployment,
  type Holds,
  hasCode,
  historyLines as lines,
  policy,
  type StateInit,
  sentinel,
  stateAt,
} from "./store-fixtures.ts";

const author = { by: "ann", atMs: 1_700_000_000_000 };

export function defineAdminContract(holds: Holds): void {
  conditions(holds);
  deletedTogether(holds);
  pages(holds);
  environments(holds);
  environmentHistory(holds);
  environmentUsers(holds);
  agentState(holds);
  agentAdoptions(holds);
  restartedAgent(holds);
  troubleOfMany(holds);
  followedHistory(holds);
}

function conditions(holds: Holds): void {
  holds("a change that leaves every byte as it was takes no version", async ({ store, other, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    assert.equal(await other.put(region, "deployment", deployment("a"), author), 1n);
    assert.equal(await store.edit(region, "deployment", "a", (spec) => spec, author), 1n);
    assert.equal(await store.stop(region, "deployment", "a", author), 2n);
    assert.equal(await other.stop(region, "deployment", "a", author), 2n);
    await store.put(region, "policy", policy("p", "one"), author);
    assert.equal(
      await store.put(region, "policy", policy("p", "one"), author, { deploymentId: "a" }),
      4n,
      "whom it belongs to is a change",
    );
    assert.equal((await store.changesSince(region, "policy", 0n, 10)).counter, 4n);
    assert.equal((await store.history(region, { limit: 10 })).length, 4);
  });

  holds("a change with a condition is made at that version alone", async ({ store, region }) => {
    const put = (replicas: number, expectedVersion: bigint) =>
      store.put(region, "deployment", deployment("a", { replicas }), author, { expectedVersion });
    await assert.rejects(put(1, 1n), hasCode("version_mismatch"));
    assert.equal(await put(1, 0n), 1n, "0 stands for no row");
    await assert.rejects(put(2, 0n), /it is at version 1/);
    assert.equal(await put(2, 1n), 2n);
    const scale = (expectedVersion: bigint) =>
      store.edit(region, "deployment", "a", () => deployment("a", { replicas: 3 }), author, {
        expectedVersion,
      });
    await assert.rejects(scale(1n), hasCode("version_mismatch"));
    assert.equal(await scale(2n), 3n);
    const stopAt = (expectedVersion: bigint) =>
      store.stop(region, "deployment", "a", author, { expectedVersion });
    await assert.rejects(stopAt(2n), hasCode("version_mismatch"));
    assert.equal(await stopAt(3n), 4n);
    assert.equal(await put(1, 0n), 5n, "nor for one that is wanted no more");
    await assert.rejects(put(2, 0n), hasCode("version_mismatch"));
    assert.equal((await store.changesSince(region, "deployment", 0n, 1)).counter, 5n, "refusals take none");
  });

  holds("of many changes that go by the same version, one is made", async ({ store, other, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    const outcomes = await Promise.allSettled(
      Array.from({ length: 12 }, (_, index) =>
        (index % 2 === 0 ? store : other).put(
          region,
          "deployment",
          deployment("a", { replicas: index + 1 }),
          author,
          { expectedVersion: 1n },
        ),
      ),
    );
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") assert.ok(hasCode("version_mismatch")(outcome.reason));
    assert.equal((await store.row(region, "deployment", "a"))?.version, 2n);
  });

  holds("a dry run is refused where the change would be, and leaves everything as it was", async (open) => {
    const { store, region } = open;
    await store.put(region, "deployment", deployment("a"), author);
    const dryRun = (id: string, k8sName: string) =>
      store.change(
        region,
        "deployment",
        id,
        () => ({ spec: deployment(id, { k8sName, replicas: 5 }), desired: "running" }),
        author,
        { dryRun: true },
      );
    const { before, after } = await dryRun("a", "app-a");
    assert.deepEqual([before?.spec.replicas, after?.spec.replicas, after?.version], [0, 5, 1n]);
    assert.equal((await dryRun("b", "app-b")).after?.version, 0n);
    await assert.rejects(dryRun("b", "app-a"), hasCode("name_taken"));
    const { rows, counter } = await store.changesSince(region, "deployment", 0n, 10);
    assert.deepEqual([rows.length, rows[0]?.spec.replicas, counter], [1, 0, 1n]);
    assert.equal((await store.history(region, { limit: 10 })).length, 1);
  });
}

function deletedTogether(holds: Holds): void {
  const stopWithPolicies = (store: Store, region: string) =>
    store.change(region, "deployment", "a", stopping("deployment"), author, { withOwned: true });
  const policies = async (store: Store, region: string) =>
    (await store.rows(region, "policy")).map(({ id, desired, version }) => `${id} ${desired} ${version}`);

  holds("a deployment is stopped together with its policies, and with no others", async (open) => {
    const { store, other, region } = open;
    await store.put(region, "deployment", deployment("a"), author);
    await store.put(region, "policy", policy("p2", "two"), author, { deploymentId: "a" });
    await store.put(region, "policy", policy("p1", "one"), author, { deploymentId: "a" });
    await store.put(region, "policy", policy("p3", "three"), author, { deploymentId: "other" });
    const seen = store.waitForChange(region, 4n, new AbortController().signal);
    assert.equal((await stopWithPolicies(other, region)).after?.version, 5n);
    await seen;
    assert.deepEqual(await policies(store, region), ["p3 running 4", "p2 stopped 6", "p1 stopped 7"]);
    assert.equal((await store.changesSince(region, "policy", 0n, 10)).counter, 7n);
    assert.deepEqual((await lines(store, region)).slice(4), [
      "ann stopped deployment a v5",
      "ann stopped policy p2 v6",
      "ann stopped policy p1 v7",
    ]);
    await store.put(region, "policy", policy("p1", "one"), author, { deploymentId: "a" });
    assert.equal((await stopWithPolicies(store, region)).after?.version, 5n);
    assert.deepEqual((await policies(store, region)).at(-1), "p1 running 8", "newer than the order");
  });

  holds("a dry run of such a change leaves the policies alone", async ({ store, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    await store.put(region, "policy", policy("p", "one"), author, { deploymentId: "a" });
    const dryRun = () =>
      store.change(region, "deployment", "a", stopping("deployment"), author, {
        withOwned: true,
        dryRun: true,
      });
    await dryRun();
    await store.stop(region, "deployment", "a", author);
    await dryRun();
    assert.deepEqual(await policies(store, region), ["p running 2"]);
    assert.equal((await store.changesSince(region, "policy", 0n, 10)).counter, 3n);
  });

  holds("policies that an order has left are stopped by the next one", async ({ store, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    await store.put(region, "policy", policy("p1", "one"), author, { deploymentId: "a" });
    await store.put(region, "policy", policy("p2", "two"), author, { deploymentId: "a" });
    await store.stop(region, "deployment", "a", author);
    assert.equal((await stopWithPolicies(store, region)).after?.version, 4n);
    assert.deepEqual(await policies(store, region), ["p1 stopped 5", "p2 stopped 6"]);
    assert.equal((await store.changesSince(region, "policy", 0n, 10)).counter, 6n);
  });
}

function pages(holds: Holds): void {
  holds("objects come in order of id with what was reported on them", async ({ store, other, region }) => {
    for (const id of ["b", "B", "a-1", "a.1", "a"]) {
      await store.put(region, "deployment", deployment(id, { k8sName: `app-${id}` }), author);
    }
    await store.put(region, "sentinel", sentinel("a"), author);
    await store.report(
      region,
      "deployment",
      { name: "app-b", id: "" },
      { exists: true, instances: [], atMs: 7 },
    );
    const ids = async (afterId: string, limit: number) =>
      (await other.objects(region, "deployment", afterId, limit)).map(({ row }) => row.id);
    assert.deepEqual(await ids("", 10), ["B", "a", "a-1", "a.1", "b"]);
    assert.deepEqual(await ids("a", 2), ["a-1", "a.1"]);
    assert.deepEqual(await ids("b", 2), []);
    const named = await other.objects(region, "deployment", "a", 10, ["b", "B", "a.1", "never"]);
    assert.deepEqual(
      named.map(({ row }) => row.id),
      ["a.1", "b"],
    );
    const reported = await other.object(region, "deployment", "b");
    assert.deepEqual(reported?.report, { exists: true, instances: [], atMs: 7 });
    assert.equal(reported?.reportedVersion, 1n);
    assert.equal((await other.object(region, "deployment", "a"))?.reportedVersion, 0n);
    assert.equal(await other.object(region, "deployment", "nobody"), undefined);
    const [only] = await other.objects(region, "sentinel", "", 10);
    assert.deepEqual([only?.row.id, only?.report], ["a", undefined]);
  });
}

const content = (secrets: Readonly<Record<string, string>>, workspaceId = "ws") => ({
  workspaceId,
  projectId: "proj",
  secrets: new Map(Object.entries(secrets)),
});

function environments(holds: Holds): void {
  holds("an environment keeps its secrets, and has a new version with every change", async (open) => {
    const { store, other, region } = open;
    assert.equal(await store.changeEnvironment(region, "e", () => undefined, author), undefined);
    const first = await store.changeEnvironment(region, "e", () => content({ KEY: "c1" }), author);
    assert.deepEqual(await other.environment(region, "e"), {
      id: "e",
      version: 1n,
      ...content({ KEY: "c1" }),
    });
    assert.deepEqual(await other.changeEnvironment(region, "e", () => content({ KEY: "c1" }), author), first);
    const second = await other.changeEnvironment(
      region,
      "e",
      (before) => ({
        ...content({}),
        secrets: new Map(before?.secrets).set("MORE", "c2"),
      }),
      author,
    );
    assert.deepEqual(
      [second?.version, [...(second?.secrets ?? [])]],
      [
        2n,
        [
          ["KEY", "c1"],
          ["MORE", "c2"],
        ],
      ],
    );
    await store.changeEnvironment(region, "E", () => content({}, "other"), author);
    assert.deepEqual(
      (await other.environments(region, "", 100)).map(({ id, version }) => `${id}@${version}`),
      ["E@3", "e@2"],
    );
    const ids = async (afterId: string, limit: number) =>
      (await other.environments(region, afterId, limit)).map(({ id }) => id);
    assert.deepEqual([await ids("", 1), await ids("E", 5), await ids("e", 5)], [["E"], ["e"], []]);
    const [agent, ...others] = await store.agents(region);
    assert.deepEqual([agent?.newestVersion, others, await store.agents("nowhere")], [0n, [], []]);
  });

  holds("secrets that are set at the same time are all kept", async ({ store, other, region }) => {
    const names = Array.from({ length: 12 }, (_, index) => `KEY_${index}`);
    await Promise.all(
      names.map((name, index) =>
        (index % 2 === 0 ? store : other).changeEnvironment(
          region,
          "e",
          (before) => ({
            ...content({}),
            secrets: new Map(before?.secrets).set(name, "c"),
          }),
          author,
        ),
      ),
    );
    assert.deepEqual(
      [...((await store.environment(region, "e"))?.secrets.keys() ?? [])].sort(),
      names.sort(),
    );
  });
}

function environmentHistory(holds: Holds): void {
  holds("history tells who changed an environment, and of its secrets the names alone", async (open) => {
    const { store, other, region } = open;
    const set = (secrets: Readonly<Record<string, string>>, workspaceId?: string) =>
      store.changeEnvironment(region, "e", () => content(secrets, workspaceId), author);
    await set({});
    await set({ KEY: "sealed-1", MORE: "sealed-2" });
    await set({ KEY: "sealed-1", MORE: "sealed-2" });
    await set({ KEY: "sealed-3" }, "other");
    await other.removeEnvironment(region, "e", { by: "bob", atMs: 2 });
    assert.equal(await other.removeEnvironment(region, "e", { by: "bob", atMs: 3 }), false);
    assert.deepEqual(await lines(other, region), [
      "ann set environment e v1",
      "ann secret_set environment e v2 KEY",
      "ann secret_set environment e v2 MORE",
      "ann set environment e v3",
      "ann secret_set environment e v3 KEY",
      "ann secret_unset environment e v3 MORE",
      "bob removed environment e v3",
    ]);
    await store.put(region, "deployment", deployment("e"), author);
    const { entries } = await other.historySince(region, 0n, { kind: "environment", id: "e", limit: 10 });
    assert.equal(entries.length, 7, "an object of the same id has a history of its own");
  });
}

function environmentUsers(holds: Holds): void {
  const isOwned = (why: RegExp) => (error: unknown) =>
    hasCode("in_use")(error) && error instanceof Error && why.test(error.message);

  holds("what is decided on an environment is written before that can go", async (open) => {
    const { store, other, region } = open;
    await store.changeEnvironment(region, "e", () => content({ KEY: "c1" }), author);
    const seen: unknown[] = [];
    const applied = store.change(
      region,
      "deployment",
      "a",
      (_row, environment) => {
        seen.push(environment?.secrets.get("KEY"));
        return { spec: deployment("a", { environmentId: "e" }), desired: "running" };
      },
      author,
      { environmentId: "e" },
    );
    const removals = Array.from({ length: 4 }, () => other.removeEnvironment(region, "e", author));
    const outcomes = await Promise.allSettled([applied, ...removals]);
    const isGone = (await store.environment(region, "e")) === undefined;
    assert.equal(seen.at(-1), isGone ? undefined : "c1", "who took its secrets keeps it");
    assert.equal(outcomes[0]?.status, "fulfilled");
  });

  holds(
    "an environment changes hands only without secrets, and once nothing of it is wanted",
    async (open) => {
      const { store, other, region } = open;
      const belongTo = (workspaceId: string, secrets: Record<string, string> = {}) =>
        store.changeEnvironment(region, "e", () => content(secrets, workspaceId), author);
      await belongTo("", { KEY: "c" });
      await belongTo("ws", { KEY: "c" });
      await assert.rejects(belongTo("ws_2", { KEY: "c" }), isOwned(/workspace_id must stay "ws".*KEY/s));
      await belongTo("ws_2", { OTHER: "of its own" });
      await belongTo("ws", {});
      await store.put(region, "sentinel", sentinel("s", { environmentId: "e" }), author);
      await assert.rejects(belongTo("ws_2"), isOwned(/workspace_id.*sentinel s .*delete it first/s));
      await belongTo("ws", { KEY: "c" });
      await belongTo("ws", {});
      await store.stop(region, "sentinel", "s", author);
      await other.put(region, "deployment", deployment("a", { environmentId: "e" }), author);
      await assert.rejects(belongTo("ws_2"), isOwned(/workspace_id.*deployment a .*delete it first/s));
      const project = store.changeEnvironment(
        region,
        "e",
        (before) => ({ ...content({}), ...before, projectId: "pr_2" }),
        author,
      );
      await assert.rejects(project, isOwned(/^project_id must stay/));
      await store.stop(region, "deployment", "a", author);
      assert.equal((await belongTo("ws_2"))?.workspaceId, "ws_2");
    },
  );

  holds("an environment is forgotten once nothing of it is wanted", async ({ store, other, region }) => {
    assert.equal(await store.removeEnvironment(region, "e", author), false);
    await store.changeEnvironment(region, "e", () => content({ KEY: "c" }), author);
    await store.put(region, "deployment", deployment("a", { environmentId: "e" }), author);
    await assert.rejects(other.removeEnvironment(region, "e", author), hasCode("in_use"));
    for (let index = 0; index < 120; index++) {
      await store.put(region, "deployment", deployment(`other-${index}`), author);
    }
    await store.edit(region, "deployment", "a", (spec) => ({ ...spec, replicas: 2 }), author);
    await assert.rejects(
      other.removeEnvironment(region, "e", author),
      hasCode("in_use"),
      "behind many others",
    );
    await store.stop(region, "deployment", "a", author);
    assert.equal(await other.removeEnvironment(region, "e", author), true);
    assert.equal(await store.environment(region, "e"), undefined);
    const again = await store.changeEnvironment(region, "e", () => content({}), author);
    assert.equal(again?.version, 2n, "a version never comes back");
  });
}

function agentState(holds: Holds): void {
  const held = { controller: "deployments", key: "one/app-a", id: "a" };
  const name = { controller: held.controller, key: held.key };
  const names = (releases: readonly (typeof name)[]) =>
    releases.map(({ controller, key }) => ({ controller, key }));

  holds("a release is given to the agent until its report no longer lists it", async (open) => {
    const { store, other, region } = open;
    const listing = (atMs: number) => stateAt(atMs, { blockedDeletions: [held] });
    assert.equal(await store.releaseDeletion(region, name, author), false, "nothing was heard of it");
    assert.deepEqual(await store.reportAgent(region, listing(1)), []);
    assert.equal(await other.releaseDeletion(region, name, { by: "ann", atMs: 2 }), true);
    assert.equal(await other.releaseDeletion(region, { ...name, key: "one/else" }, author), false);
    assert.deepEqual(names(await store.reportAgent(region, listing(3))), [name]);
    assert.deepEqual(names(await other.reportAgent(region, listing(4))), [name]);
    assert.deepEqual(await store.reportAgent(region, stateAt(5)), []);
    assert.deepEqual(await store.reportAgent(region, listing(6)), [], "a release counts once");
    assert.deepEqual(await lines(store, region), ["ann released deployment a v0"]);
  });

  holds("a release that nobody takes for ten minutes is void", async ({ store, region }) => {
    await store.reportAgent(region, stateAt(1, { blockedDeletions: [held] }));
    await store.releaseDeletion(region, name, { by: "ann", atMs: 2 });
    const later = stateAt(3 + 10 * 60_000, { blockedDeletions: [held] });
    assert.deepEqual(await store.reportAgent(region, later), []);
  });

  holds("history tells once what got into trouble, and what came out", async ({ store, region }) => {
    const troubled = (reason: string) => ({
      controller: "deployments",
      key: "one/app-a",
      id: "a",
      desiredVersion: 4n,
      outcome: Outcome.RETRYING,
      reason,
    });
    const report = (atMs: number, ...reasons: readonly string[]) =>
      store.reportAgent(region, stateAt(atMs, { troubledObjects: reasons.map(troubled) }));
    await report(1, "attempt 1 failed");
    await report(2, "attempt 2 failed");
    await report(3, "quota exceeded");
    await report(4);
    await report(5);
    assert.deepEqual(await lines(store, region), [
      "agent troubled deployment a v4 retrying: attempt 1 failed",
      "agent troubled deployment a v4 retrying: quota exceeded",
      "agent recovered deployment a v4",
    ]);
  });
}

function agentAdoptions(holds: Holds): void {
  const place = {
    controller: "deployments",
    kind: "apps/ReplicaSet",
    namespace: "one",
    name: "app-a",
    uid: "u1",
  };
  const strangers = [
    { ...place, id: "a", adoptable: true },
    { ...place, name: "app-b", id: "b", adoptable: false },
    { ...place, kind: "Secret", name: "krane-registry", adoptable: true },
  ];

  holds("an adoption is given to the agent until its report no longer lists the object", async (open) => {
    const { store, other, region } = open;
    const listing = (atMs: number) => stateAt(atMs, { strangers });
    const names = (refs: readonly StrangerRef[]) =>
      refs.map(({ kind, name, uid }) => [kind, name, uid].join(" "));
    assert.deepEqual(await store.adoptObjects(region, [place], author), [], "nothing was heard of it");
    await store.put(region, "deployment", deployment("a"), author);
    await store.reportAgent(region, listing(1));
    assert.deepEqual(await store.adoptionsFor(region, listing(1)), []);
    const asked = [
      place,
      place,
      { ...place, uid: "u2" },
      { ...place, name: "app-b" },
      { ...place, ...strangers[2] },
    ];
    const accepted = await other.adoptObjects(region, asked, { by: "ann", atMs: 2 });
    const both = ["Secret krane-registry u1", "apps/ReplicaSet app-a u1"];
    assert.deepEqual(names(accepted).sort(), both);
    assert.deepEqual(names(await store.adoptionsFor(region, listing(3))).sort(), both);
    assert.deepEqual(names(await other.adoptionsFor(region, listing(4))).sort(), both);
    const left = stateAt(5, { strangers: [{ ...place, uid: "u3", adoptable: true }] });
    assert.deepEqual(await store.adoptionsFor(region, left), [], "another object has the name");
    assert.deepEqual(await store.adoptionsFor(region, listing(6)), [], "an adoption counts once");
    assert.deepEqual((await lines(store, region)).slice(-1), [
      "ann adopted deployment a v1 apps/ReplicaSet one/app-a",
    ]);
  });

  holds("an adoption that nobody takes for ten minutes is void", async ({ store, region }) => {
    await store.reportAgent(region, stateAt(1, { strangers }));
    await store.adoptObjects(region, [place], { by: "ann", atMs: 2 });
    assert.equal((await store.adoptionsFor(region, stateAt(3, { strangers }))).length, 1);
    assert.deepEqual(await store.adoptionsFor(region, stateAt(3 + 10 * 60_000, { strangers })), []);
  });
}

function restartedAgent(holds: Holds): void {
  const trouble = (id: string, desiredVersion: bigint) => ({
    controller: "deployments",
    key: `one/app-${id}`,
    id,
    desiredVersion,
    outcome: Outcome.PARKED,
    reason: "no",
  });
  const stateOf = (
    instanceId: string,
    stream: { cursor?: bigint; settledUpTo?: bigint; unsettled?: bigint[] },
    troubledObjects: readonly ReturnType<typeof trouble>[] = [],
  ) => ({
    state: { instanceId, controllers: [{ name: "deployments", stream }] },
    troubledObjects: [...troubledObjects],
  });
  const known = async (store: Store, region: string) => {
    const { report } = (await store.agents(region))[0]?.known ?? assert.fail("nothing is known");
    const { settledUpTo = 0n, unsettled = [] } = report.state?.controllers[0]?.stream ?? {};
    return [settledUpTo, unsettled, report.troubledObjects.map(({ id }) => id)];
  };

  holds("what an agent had settled, and was in trouble with, outlives its process", async (open) => {
    const { store, other, region } = open;
    for (const id of ["a", "b", "c", "d"]) await store.put(region, "deployment", deployment(id), author);
    const report = (atMs: number, init: StateInit) => store.reportAgent(region, stateAt(atMs, init));
    const busy = { cursor: 2n, settledUpTo: 4n, unsettled: [3n] };
    await report(1, stateOf("ins_1", busy, [trouble("a", 1n), trouble("b", 2n)]));
    await report(2, stateOf("ins_2", {}));
    assert.deepEqual(await known(other, region), [4n, [3n], ["a", "b"]]);
    const [agent] = await other.agents(region);
    assert.equal(agent?.state?.report.state?.controllers[0]?.stream?.cursor, 0n, "its own word is kept too");
    await report(3, stateOf("ins_2", { cursor: 1n }));
    assert.deepEqual(await known(other, region), [4n, [3n], ["b"]], "it has come to the first");
    await report(4, stateOf("ins_2", { cursor: 1n, settledUpTo: 3n, unsettled: [2n] }, [trouble("b", 2n)]));
    assert.deepEqual(await known(other, region), [4n, [], ["b"]]);
    await report(5, stateOf("ins_2", { cursor: 1n, settledUpTo: 3n, unsettled: [2n] }));
    assert.deepEqual(await known(other, region), [4n, [], []]);
    assert.deepEqual((await lines(store, region)).slice(4), [
      "agent troubled deployment a v1 refused: no",
      "agent troubled deployment b v2 refused: no",
      "agent recovered deployment a v1",
      "agent recovered deployment b v2",
    ]);
  });

  holds("what is known of an agent does not grow with the names that it makes up", async (open) => {
    const { store, region } = open;
    for (let index = 1; index <= 5; index++) {
      const controllers = ["deployments", `made-up-${index}`].map((name) => ({ name, stream: {} }));
      await store.reportAgent(region, stateAt(index, { state: { instanceId: "ins_1", controllers } }));
    }
    const [agent] = await store.agents(region);
    assert.deepEqual(
      agent?.known?.report.state?.controllers.map(({ name }) => name),
      ["deployments", "made-up-5"],
    );
  });

  holds("numbers of another life of the control plane settle nothing", async ({ store, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    await store.reportAgent(region, stateAt(1, stateOf("ins_1", { cursor: 1n })));
    assert.deepEqual(await known(store, region), [1n, [], []]);
    await store.reportAgent(region, stateAt(2, stateOf("ins_1", { cursor: 9n })));
    assert.deepEqual(await known(store, region), [0n, [], []]);
    await store.reportAgent(region, stateAt(3, stateOf("ins_1", { cursor: 1n })));
    assert.deepEqual(await known(store, region), [1n, [], []]);
  });
}

function troubleOfMany(holds: Holds): void {
  holds("the trouble of many objects is entered in the order of the report", async ({ store, region }) => {
    const ids = Array.from({ length: 90 }, (_, index) => `d_${(index * 7) % 90}`);
    const troubledObjects = ids.map((id) => ({
      controller: "deployments",
      key: `one/${id}`,
      id,
      reason: id,
    }));
    await store.reportAgent(region, stateAt(1, { troubledObjects }));
    const { entries } = await store.historySince(region, 0n, { limit: 100 });
    assert.deepEqual(
      entries.map(({ number, id }) => `${number} ${id}`),
      ids.map((id, index) => `${index + 1} ${id}`),
    );
  });
}

function followedHistory(holds: Holds): void {
  holds(
    "what somebody changed can be read without what agents observed",
    async ({ store, other, region }) => {
      await store.put(region, "deployment", deployment("a", { k8sName: "a" }), author);
      await store.report(
        region,
        "deployment",
        { name: "a", id: "" },
        { exists: true, instances: [], atMs: 7 },
      );
      const changes = { changesOnly: true, limit: 10 };
      const events = (entries: readonly NumberedEntry[]) => entries.map(({ event }) => event);
      assert.deepEqual(events(await other.history(region, { limit: 10 })), ["reported", "set"]);
      assert.deepEqual(events(await other.history(region, changes)), ["set"]);
      assert.deepEqual(events((await other.historySince(region, 0n, changes)).entries), ["set"]);
    },
  );

  holds(
    "whoever follows the history while many write misses nothing and sees nothing twice",
    async (open) => {
      const { store, other, region } = open;
      await store.put(region, "deployment", deployment("a"), author);
      await store.put(region, "sentinel", sentinel("a"), author);
      const rounds = 30;
      const seen: NumberedEntry[] = [];
      let isWriting = true;
      const reader = (async () => {
        for (let cursor = 0n; ; ) {
          const wasWriting = isWriting;
          const { entries, newest } = await other.historySince(region, cursor, { limit: 7 });
          seen.push(...entries);
          assert.ok((entries.at(-1)?.number ?? 0n) <= newest);
          cursor = entries.at(-1)?.number ?? cursor;
          if (entries.length === 0 && !wasWriting) return;
        }
      })();
      // Changes and reports hold different locks, so that their transactions end in any order.
      await Promise.all([
        repeat(rounds, (index) =>
          store.put(region, "deployment", deployment("a", { replicas: index + 1 }), author),
        ),
        repeat(rounds, (index) =>
          other.report(
            region,
            "sentinel",
            { name: "app-a", id: "a" },
            { availableReplicas: index, health: 1, runningImage: "", atMs: index },
          ),
        ),
      ]);
      isWriting = false;
      await reader;
      assert.deepEqual(
        seen.map(({ number }) => Number(number)),
        Array.from({ length: 2 + 2 * rounds }, (_, index) => index + 1),
      );
      const newestFirst = await store.history(region, { limit: 1_000 });
      assert.deepEqual([...newestFirst].reverse(), seen);
    },
  );

  holds("the history of one object can be followed alone", async ({ store, region }) => {
    for (const id of ["a", "b", "a2"]) await store.put(region, "deployment", deployment(id), author);
    const { entries, newest } = await store.historySince(region, 0n, {
      kind: "deployment",
      id: "b",
      limit: 10,
    });
    assert.deepEqual([entries.map(({ number }) => number), newest], [[2n], 3n]);
    assert.deepEqual((await store.historySince(region, 2n ** 64n - 1n, { limit: 10 })).entries, []);
    assert.deepEqual((await store.historySince(region, 0n, { limit: 0 })).newest, 3n);
  });
}

async function repeat(times: number, work: (index: number) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < times; index++) await work(index);
}
