// What every store does for the admin API: changes with a condition, pages, environments,
// releases, and a history that can be followed.
import assert from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import type { Kind } from "../../src/server/kinds.ts";
import type { NumberedEntry, Store } from "../../src/server/store.ts";
import { deployment, type Holds, hasCode, policy, sentinel } from "./store-fixtures.ts";

const author = { by: "ann", atMs: 1_700_000_000_000 };

export function defineAdminContract(holds: Holds): void {
  conditions(holds);
  pages(holds);
  environments(holds);
  environmentUsers(holds);
  agentState(holds);
  troubleOfMany(holds);
  followedHistory(holds);
  retention(holds);
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

function pages(holds: Holds): void {
  holds("objects come in order of id with what was reported on them", async ({ store, other, region }) => {
    for (const id of ["b", "B", "a-1", "a.1", "a"]) {
      await store.put(region, "deployment", deployment(id, { k8sName: `app-${id}` }), author);
    }
    await store.put(region, "sentinel", sentinel("a"), author);
    await store.reportDeployment(region, "app-b", { exists: true, instances: [], atMs: 7 });
    const ids = async (afterId: string, limit: number) =>
      (await other.objects(region, "deployment", afterId, limit)).map(({ row }) => row.id);
    assert.deepEqual(await ids("", 10), ["B", "a", "a-1", "a.1", "b"]);
    assert.deepEqual(await ids("a", 2), ["a-1", "a.1"]);
    assert.deepEqual(await ids("b", 2), []);
    const reported = await other.object(region, "deployment", "b");
    assert.deepEqual(reported?.deployment, { exists: true, instances: [], atMs: 7 });
    assert.equal(reported?.reportedVersion, 1n);
    assert.equal((await other.object(region, "deployment", "a"))?.reportedVersion, 0n);
    assert.equal(await other.object(region, "deployment", "nobody"), undefined);
    const [only] = await other.objects(region, "sentinel", "", 10);
    assert.deepEqual([only?.row.id, only?.sentinel], ["a", undefined]);
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
    assert.equal(await store.changeEnvironment(region, "e", () => undefined), undefined);
    const first = await store.changeEnvironment(region, "e", () => content({ KEY: "c1" }));
    assert.deepEqual(await other.environment(region, "e"), {
      id: "e",
      version: 1n,
      ...content({ KEY: "c1" }),
    });
    assert.deepEqual(await other.changeEnvironment(region, "e", () => content({ KEY: "c1" })), first);
    const second = await other.changeEnvironment(region, "e", (before) => ({
      ...content({}),
      secrets: new Map(before?.secrets).set("MORE", "c2"),
    }));
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
    await store.changeEnvironment(region, "E", () => content({}, "other"));
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
        (index % 2 === 0 ? store : other).changeEnvironment(region, "e", (before) => ({
          ...content({}),
          secrets: new Map(before?.secrets).set(name, "c"),
        })),
      ),
    );
    assert.deepEqual(
      [...((await store.environment(region, "e"))?.secrets.keys() ?? [])].sort(),
      names.sort(),
    );
  });
}

function environmentUsers(holds: Holds): void {
  holds("what is decided on an environment is written before that can go", async (open) => {
    const { store, other, region } = open;
    await store.changeEnvironment(region, "e", () => content({ KEY: "c1" }));
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
    const removals = Array.from({ length: 4 }, () => other.removeEnvironment(region, "e"));
    const outcomes = await Promise.allSettled([applied, ...removals]);
    const isGone = (await store.environment(region, "e")) === undefined;
    assert.equal(seen.at(-1), isGone ? undefined : "c1", "who took its secrets keeps it");
    assert.equal(outcomes[0]?.status, "fulfilled");
  });

  holds("an environment is forgotten once nothing of it is wanted", async ({ store, other, region }) => {
    assert.equal(await store.removeEnvironment(region, "e"), false);
    await store.changeEnvironment(region, "e", () => content({ KEY: "c" }));
    await store.put(region, "deployment", deployment("a", { environmentId: "e" }), author);
    await assert.rejects(other.removeEnvironment(region, "e"), hasCode("in_use"));
    for (let index = 0; index < 120; index++) {
      await store.put(region, "deployment", deployment(`other-${index}`), author);
    }
    await store.edit(region, "deployment", "a", (spec) => ({ ...spec, replicas: 2 }), author);
    await assert.rejects(other.removeEnvironment(region, "e"), hasCode("in_use"), "behind many others");
    await store.stop(region, "deployment", "a", author);
    assert.equal(await other.removeEnvironment(region, "e"), true);
    assert.equal(await store.environment(region, "e"), undefined);
    const again = await store.changeEnvironment(region, "e", () => content({}));
    assert.equal(again?.version, 2n, "a version never comes back");
  });
}

type StateInit = Exclude<MessageInitShape<typeof ReportAgentStateRequestSchema>, { $typeName: string }>;
const stateAt = (atMs: number, init: StateInit = {}) => ({
  report: create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_1" }, ...init }),
  atMs,
});

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
          other.reportSentinel(
            region,
            { k8sName: "app-a", id: "a" },
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

function retention(holds: Holds): void {
  holds(
    "a deployment that was stopped and reported gone long ago is forgotten",
    async ({ store, region }) => {
      const gone = { exists: false, instances: [], atMs: 1_000 };
      for (const id of ["done", "late", "wanted", "unheard", "again"]) {
        await store.put(region, "deployment", deployment(id), author);
      }
      await store.reportDeployment(region, "app-again", gone);
      for (const id of ["done", "late", "unheard", "again"])
        await store.stop(region, "deployment", id, author);
      await store.reportDeployment(region, "app-done", gone);
      await store.reportDeployment(region, "app-late", { ...gone, atMs: 5_000 });
      await store.reportDeployment(region, "app-wanted", gone);
      await store.trimHistory({ ageMaxMs: 1_000, entriesMax: 1_000 }, 3_000);
      const left = (await store.rows(region, "deployment")).map(({ id }) => id);
      // What was reported before the order says nothing about it.
      assert.deepEqual(left.sort(), ["again", "late", "unheard", "wanted"]);
      assert.equal(await store.deploymentReport(region, "done"), undefined);
      const second = deployment("other", { k8sName: "app-done" });
      assert.equal(await store.put(region, "deployment", second, author), 10n, "its name is free");
    },
  );
}

async function repeat(times: number, work: (index: number) => Promise<unknown>): Promise<void> {
  for (let index = 0; index < times; index++) await work(index);
}

/** The oldest first. */
async function lines(store: Store, region: string): Promise<readonly string[]> {
  const text = ({ by, event, kind, id, version, outcome }: NumberedEntry & { kind: Kind }) =>
    `${by} ${event} ${kind} ${id} v${version} ${outcome}`.trim();
  return (await store.history(region, { limit: 100 })).map(text).reverse();
}
