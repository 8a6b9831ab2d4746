// What every store does, in one text. Each test works in a region of its own.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { Health } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import type { ApplyInit, KindName, ReportOf } from "../../src/kinds/kinds.ts";
import { desiredFeed } from "../../src/server/desired-feed.ts";
import { createSpec } from "../../src/server/kind-messages.ts";
import type { Row, Store } from "../../src/server/store.ts";
import { eventually } from "../support/eventually.ts";
import { defineAdminContract } from "./store-admin-contract.ts";
import { defineAppContract } from "./store-app-contract.ts";
import { defineDigestContract } from "./store-digest-contract.ts";
import { deployment, type Holds, hasCode, policy, reportOf, sentinel } from "./store-fixtures.ts";
import { defineHostnameContract } from "./store-hostname-contract.ts";
import { defineRetentionContract } from "./store-retention-contract.ts";
import { defineSessionContract } from "./store-session-contract.ts";
import { defineSetContract } from "./store-set-contract.ts";
import type { OpenTarget, StoreTarget } from "./store-target.ts";

const author = { by: "somebody", atMs: 1_700_000_000_000 };
const { signal } = new AbortController();

const instance = (k8sName: string, address: string, status: Status = Status.RUNNING) =>
  create(InstanceSchema, { k8sName, address, status, cpuMillicores: 5n });
export function defineStoreContract(target: StoreTarget): void {
  describe(`the store in ${target.name}`, () => {
    let opened: OpenTarget | string = "not opened";
    before(async () => {
      opened = await target.open();
      if (typeof opened === "string") console.error(`SKIPPED: store contract, ${target.name}: ${opened}`);
    });
    after(async () => {
      if (typeof opened !== "string") await opened.close();
    });
    const holds = (name: string, check: (open: OpenTarget & { region: string }) => Promise<void>) =>
      test(name, async (t: TestContext) => {
        if (typeof opened === "string") return t.skip(opened);
        const region = `r-${randomUUID()}`;
        await opened.store.registerRegion(region);
        await check({ ...opened, region });
      });
    desiredState(holds);
    ages(holds);
    largeChanges(holds);
    content(holds);
    names(holds);
    waiting(holds);
    concurrency(holds);
    reports(holds);
    agents(holds);
    reportsInOrder(holds);
    reportsTogether(holds);
    incarnations(holds);
    history(holds);
    defineDigestContract(holds);
    defineAdminContract(holds);
    defineRetentionContract(holds);
    defineSessionContract(holds);
    defineAppContract(holds);
    defineSetContract(holds);
    defineHostnameContract(holds);
  });
}

function desiredState(holds: Holds): void {
  holds(
    "the first change has version 1, and each later one the next, over all kinds",
    async ({ store, region }) => {
      assert.equal(await store.put(region, "deployment", deployment("a"), author), 1n);
      assert.equal(await store.put(region, "sentinel", sentinel("a"), author), 2n);
      assert.equal(await store.stop(region, "sentinel", "a", author), 3n);
      const edited = await store.edit(
        region,
        "deployment",
        "a",
        () => deployment("a", { replicas: 9 }),
        author,
      );
      assert.equal(edited, 4n);
      assert.equal((await store.row(region, "deployment", "a"))?.spec.replicas, 9);
      assert.equal((await store.row(region, "sentinel", "a"))?.desired, "stopped");
      await store.registerRegion(`${region}-other`);
      assert.equal(await store.put(`${region}-other`, "deployment", deployment("a"), author), 1n);
    },
  );

  holds("registering a region again keeps what is there", async ({ store, other, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    await Promise.all([store.registerRegion(region), other.registerRegion(region)]);
    assert.equal((await store.rows(region, "deployment")).length, 1);
    assert.equal((await store.regions()).filter((name) => name === region).length, 1);
    await assert.rejects(store.registerRegion(""), hasCode("incomplete"));
  });

  holds("a region that nobody registered is refused everywhere", async ({ store }) => {
    const calls = [
      () => store.put("x", "deployment", deployment("a"), author),
      () => store.edit("x", "deployment", "a", (spec) => spec, author),
      () => store.stop("x", "deployment", "a", author),
      () => store.remove("x", "deployment", "a", author),
      () => store.row("x", "deployment", "a"),
      () => store.rows("x", "deployment"),
      () => store.changesSince("x", "deployment", 0n, 1),
      () => store.waitForChange("x", 0n, signal),
      () => store.report("x", "deployment", { name: "a", id: "" }, { exists: true, instances: [], atMs: 0 }),
      () => store.report("x", "sentinel", { name: "a", id: "" }, sentinelReport(0)),
      () => store.reportHeartbeat("x", 0),
      () => store.reportStandby("x", { instanceId: "ins_2", version: "1", atMs: 0 }),
      () => store.reportAgent("x", { report: create(ReportAgentStateRequestSchema), atMs: 0 }),
      () => reportOf(store, "x", "deployment", "a"),
      () => reportOf(store, "x", "sentinel", "a"),
      () => store.history("x", { limit: 1 }),
      () => store.historySince("x", 0n, { limit: 1 }),
      () => store.object("x", "deployment", "a"),
      () => store.objects("x", "deployment", "", 1),
      () => store.environment("x", "e"),
      () => store.environments("x", "", 1),
      () => store.changeEnvironment("x", "e", () => undefined, author),
      () => store.removeEnvironment("x", "e", author),
      () => store.releaseDeletion("x", { controller: "deployments", key: "a/b" }, author),
      () => store.adoptObjects("x", [], author),
      () => store.adoptionsFor("x", { report: create(ReportAgentStateRequestSchema), atMs: 0 }),
    ];
    for (const call of calls) await assert.rejects(call(), hasCode("unknown_region"));
  });

  holds("rows come in order of version, each once, as it is now", async ({ store, region }) => {
    for (const id of ["a", "b", "c"]) await store.put(region, "deployment", deployment(id), author);
    await store.put(region, "deployment", deployment("a", { replicas: 2 }), author);
    const { rows, counter } = await store.changesSince(region, "deployment", 0n, 10);
    assert.deepEqual(seen(rows), ["b@2", "c@3", "a@4"]);
    assert.equal(counter, 4n);
    assert.deepEqual(seen((await store.changesSince(region, "deployment", 2n, 1)).rows), ["c@3"]);
    assert.deepEqual((await store.changesSince(region, "sentinel", 0n, 10)).rows, []);
    assert.deepEqual((await store.changesSince(region, "deployment", 2n ** 64n - 1n, 10)).rows, []);
    assert.deepEqual(seen(await store.rows(region, "deployment")), ["b@2", "c@3", "a@4"]);
  });
}

function ages(holds: Holds): void {
  holds("an object is as old as its first order, or the first one after its deletion", async (open) => {
    const { store, region } = open;
    const createdAtMs = async () => (await store.row(region, "deployment", "a"))?.createdAtMs ?? 0;
    await store.put(region, "deployment", deployment("a"), author);
    const first = await createdAtMs();
    assert.ok(first > 0);
    await store.put(region, "deployment", deployment("a", { replicas: 9 }), author);
    assert.equal(await createdAtMs(), first);
    await store.stop(region, "deployment", "a", author);
    assert.equal(await createdAtMs(), first);
    // The database has a clock of its own.
    const later = { ...author, atMs: author.atMs + 1_000 };
    await eventually("another time passes", async () => assert.ok(Date.now() > first));
    await store.put(region, "deployment", deployment("a"), later);
    assert.ok((await createdAtMs()) > first);
  });
}

function largeChanges(holds: Holds): void {
  holds("of large changes fewer come at once, in order, and a stream brings all of them", async (open) => {
    const { store, region } = open;
    for (const [id, bytes] of Object.entries({ d: 7e5, a: 7e5, c: 3e6, b: 1 })) {
      await store.put(region, "deployment", deployment(id, { image: "x".repeat(bytes) }), author);
    }
    const batch = async (cursor: bigint, limit = 10) => {
      const { rows, counter, isFull } = await store.changesSince(region, "deployment", cursor, limit);
      return [rows.map(({ id }) => id).join(""), counter, isFull];
    };
    assert.deepEqual(await batch(0n), ["da", 4n, true]);
    assert.deepEqual(await batch(2n), ["c", 4n, true]);
    assert.deepEqual(await batch(3n), ["b", 4n, false]);
    assert.deepEqual(await batch(4n), ["", 4n, false]);
    assert.deepEqual(await batch(0n, 1), ["d", 4n, true]);
    const versions: bigint[] = [];
    for await (const { version } of desiredFeed(store, "deployment", region, 0n, 2 ** 23, signal)) {
      versions.push(version);
      if (versions.length === 4) break;
    }
    assert.deepEqual(versions, [1n, 2n, 3n, 4n]);
  });
}

function content(holds: Holds): void {
  holds("everything that a spec holds comes back", async ({ store, other, region }) => {
    const spec = deployment("a", {
      image: "registry.example/ä:1",
      command: ["sh", "-c", "echo 'ok' \\ \"$X\""],
      cpuMillicores: 2n ** 60n + 1n,
      encryptedEnvironmentVariables: Uint8Array.from({ length: 256 }, (_, index) => index),
    });
    await store.put(region, "deployment", spec, author);
    assert.deepEqual((await other.row(region, "deployment", "a"))?.spec, spec);
    const rule = createSpec("policy", {
      ciliumNetworkPolicyId: "p",
      k8sName: "r",
      policy: Uint8Array.of(0, 255),
    });
    await store.put(region, "policy", rule, author, { deploymentId: "a" });
    const row = await other.row(region, "policy", "p");
    assert.deepEqual([row?.spec, row?.deploymentId], [rule, "a"]);
  });

  holds("what was given to the store can be changed afterwards without harm", async ({ store, region }) => {
    const init = { deploymentId: "a", k8sName: "app", command: ["run"] };
    await store.put(region, "deployment", createSpec("deployment", init), author);
    init.command.push("away");
    assert.deepEqual((await store.row(region, "deployment", "a"))?.spec.command, ["run"]);
  });

  holds("removing a row is silent and takes its report with it", async ({ store, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    await store.report(
      region,
      "deployment",
      { name: "app-a", id: "" },
      {
        exists: true,
        instances: [instance("p", "1:1")],
        atMs: 1,
      },
    );
    assert.equal(await store.remove(region, "deployment", "a", author), true);
    assert.equal(await store.remove(region, "deployment", "a", author), false);
    assert.equal((await store.changesSince(region, "deployment", 0n, 10)).counter, 1n);
    assert.equal(await store.row(region, "deployment", "a"), undefined);
    assert.equal(await reportOf(store, region, "deployment", "a"), undefined);
    assert.equal(await store.stop(region, "deployment", "a", author), undefined);
    assert.equal(await store.edit(region, "deployment", "a", (spec) => spec, author), undefined);
    assert.equal(
      (await store.changesSince(region, "deployment", 0n, 10)).counter,
      1n,
      "nothing takes no number",
    );
  });
}

function names(holds: Holds): void {
  holds(
    "a name belongs to one row of its kind, also after that was stopped, until it is removed",
    async (open) => {
      const { store, region } = open;
      await store.put(region, "deployment", deployment("a", { k8sName: "same" }), author);
      const second = deployment("b", { k8sName: "same", k8sNamespace: "two" });
      await assert.rejects(store.put(region, "deployment", second, author), hasCode("name_taken"));
      await store.stop(region, "deployment", "a", author);
      await assert.rejects(store.put(region, "deployment", second, author), hasCode("name_taken"));
      await store.remove(region, "deployment", "a", author);
      assert.equal(await store.put(region, "deployment", second, author), 3n);
    },
  );

  holds("policies may share a name in different namespaces", async ({ store, region }) => {
    await store.put(region, "policy", policy("a", "one"), author);
    await store.put(region, "policy", policy("b", "two"), author);
    await assert.rejects(store.put(region, "policy", policy("c", "two"), author), hasCode("name_taken"));
  });

  holds("a row keeps its name and its id, and needs both", async ({ store, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    const renamed = deployment("a", { k8sName: "new" });
    await assert.rejects(store.put(region, "deployment", renamed, author), hasCode("name_changed"));
    const withOtherId = store.edit(region, "deployment", "a", () => deployment("b"), author);
    await assert.rejects(withOtherId, hasCode("incomplete"));
    await assert.rejects(store.put(region, "deployment", deployment(""), author), hasCode("incomplete"));
    const nameless = deployment("c", { k8sName: "" });
    await assert.rejects(store.put(region, "deployment", nameless, author), hasCode("incomplete"));
    const { rows, counter } = await store.changesSince(region, "deployment", 0n, 10);
    assert.deepEqual([rows.length, counter], [1, 1n], "a refused change changes nothing");
  });

  holds("of many that want the same name at the same time, one gets it", async ({ store, other, region }) => {
    const ids = Array.from({ length: 12 }, (_, index) => `d${index}`);
    const outcomes = await Promise.allSettled(
      ids.map((id, index) =>
        (index % 2 === 0 ? store : other).put(
          region,
          "deployment",
          deployment(id, { k8sName: "same" }),
          author,
        ),
      ),
    );
    assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, 1);
    for (const outcome of outcomes)
      if (outcome.status === "rejected") assert.ok(hasCode("name_taken")(outcome.reason));
    const { rows, counter } = await store.changesSince(region, "deployment", 0n, 100);
    assert.deepEqual([rows.length, counter], [1, 1n]);
  });
}

function waiting(holds: Holds): void {
  holds("a wait ends with the next change of any kind, and at once when that was missed", async (open) => {
    const { store, region } = open;
    const waits = [store.waitForChange(region, 0n, signal), store.waitForChange(region, 0n, signal)];
    await store.put(region, "policy", policy("a", "one"), author);
    await Promise.all(waits);
    await store.waitForChange(region, 0n, signal);
    assert.equal(store.waitingCount(region), 0);
  });

  holds("a wait ends with a change that another process made", async ({ store, other, region }) => {
    for (let version = 0n; version < 5n; version++) {
      const wait = store.waitForChange(region, version, signal);
      await eventually("it waits", () => assert.equal(store.waitingCount(region), 1));
      await other.put(region, "deployment", deployment("a", { replicas: Number(version) + 1 }), author);
      await wait;
      assert.equal((await store.changesSince(region, "deployment", version, 10)).rows.length, 1);
    }
  });

  holds("a wait ends with its signal and is forgotten", async ({ store, region }) => {
    const cancelled = new AbortController();
    const wait = store.waitForChange(region, 0n, cancelled.signal);
    await eventually("it waits", () => assert.equal(store.waitingCount(region), 1));
    cancelled.abort(new Error("enough"));
    await assert.rejects(wait, /enough/);
    assert.equal(store.waitingCount(region), 0);
  });
}

function concurrency(holds: Holds): void {
  holds(
    "whoever reads on from a cursor while many write misses nothing and sees nothing twice",
    async (open) => {
      let round = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(fc.integer({ min: 0, max: 7 }), { minLength: 1, maxLength: 12 }), {
            minLength: 2,
            maxLength: 6,
          }),
          fc.integer({ min: 1, max: 5 }),
          async (writers, limit) => {
            const region = `${open.region}-${round++}`;
            await open.store.registerRegion(region);
            const total = writers.flat().length;
            const reader = follow(open, region, BigInt(total), limit);
            await Promise.all(writers.map((ids, writer) => write(open, region, writer, ids)));
            const { versions, state } = await reader;
            assert.deepEqual(versions, [...new Set(versions)].sort(ascending), "in order, and each once");
            const rows = await open.other.rows(region, "deployment");
            assert.deepEqual(
              [...state].sort(),
              rows.map(({ id, version, spec }) => [id, `${version} ${spec.image}`]).sort(),
            );
          },
        ),
        { numRuns: 8 },
      );
    },
  );

  holds("edits that are made at the same time all count", async ({ store, other, region }) => {
    await store.put(region, "deployment", deployment("a"), author);
    const versions = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? store : other).edit(
          region,
          "deployment",
          "a",
          (spec) =>
            createSpec("deployment", { ...spec, replicas: spec.replicas + 1 } as ApplyInit<"deployment">),
          author,
        ),
      ),
    );
    assert.equal((await store.row(region, "deployment", "a"))?.spec.replicas, 20);
    assert.deepEqual(
      versions.map(Number).sort((a, b) => a - b),
      Array.from({ length: 20 }, (_, index) => index + 2),
    );
  });
}

/** Reads as a stream does, until it has seen the last version. */
async function follow({ other }: OpenTarget, region: string, until: bigint, limit: number) {
  const versions: bigint[] = [];
  const state = new Map<string, string>();
  for (let cursor = 0n; cursor < until; ) {
    const { rows, counter } = await other.changesSince(region, "deployment", cursor, limit);
    for (const { id, version, spec } of rows) {
      versions.push(version);
      state.set(id, `${version} ${spec.image}`);
      cursor = version;
    }
    if (rows.length === 0) await other.waitForChange(region, counter, AbortSignal.timeout(20_000));
  }
  return { versions, state };
}

async function write({ store, other }: OpenTarget, region: string, writer: number, ids: readonly number[]) {
  for (const [index, id] of ids.entries()) {
    const spec = deployment(`d${id}`, { image: `${writer}-${index}` });
    await (writer % 2 === 0 ? store : other).put(region, "deployment", spec, author);
  }
}

function reports(holds: Holds): void {
  holds(
    "a report replaces the one before, and an address belongs to the newest that names it",
    async (open) => {
      const { store, other, region } = open;
      for (const id of ["a", "b"]) await store.put(region, "deployment", deployment(id), author);
      const first = [instance("p1", "10.0.0.1:80"), instance("p2", "10.0.0.2:80"), instance("p3", "")];
      assert.equal(
        await reportDeployment(store, region, "app-a", { exists: true, instances: first, atMs: 5 }),
        true,
      );
      assert.deepEqual(await reportOf(other, region, "deployment", "a"), {
        exists: true,
        instances: first,
        atMs: 5,
      });
      const second = [instance("q1", "10.0.0.2:80"), instance("q3", "")];
      await reportDeployment(other, region, "app-b", { exists: true, instances: second, atMs: 6 });
      const left = (await reportOf(store, region, "deployment", "a"))?.instances.map(
        ({ k8sName }) => k8sName,
      );
      assert.deepEqual(left, ["p1", "p3"]);
      await reportDeployment(store, region, "app-b", { exists: false, instances: [], atMs: 7 });
      assert.deepEqual(await reportOf(store, region, "deployment", "b"), {
        exists: false,
        instances: [],
        atMs: 7,
      });
      assert.equal(
        await reportDeployment(store, region, "nobody", { exists: true, instances: [], atMs: 8 }),
        false,
      );
    },
  );

  holds(
    "of reports that claim the same address at the same time, one keeps it",
    async ({ store, other, region }) => {
      const ids = ["a", "b", "c", "d"];
      for (const id of ids) await store.put(region, "deployment", deployment(id), author);
      await Promise.all(
        ids.map((id, index) =>
          reportDeployment(index % 2 === 0 ? store : other, region, `app-${id}`, {
            exists: true,
            instances: [instance(`p-${id}`, "10.0.0.1:80")],
            atMs: index,
          }),
        ),
      );
      const reportsNow = await Promise.all(ids.map((id) => reportOf(store, region, "deployment", id)));
      assert.equal(reportsNow.flatMap((report) => report?.instances ?? []).length, 1);
    },
  );

  holds(
    "a report on a sentinel needs its name, and its id if it says one",
    async ({ store, other, region }) => {
      await store.put(region, "sentinel", sentinel("a"), author);
      assert.equal(await reportOf(store, region, "sentinel", "a"), undefined);
      assert.equal(
        await store.report(region, "sentinel", { name: "app-a", id: "b" }, sentinelReport(1)),
        false,
      );
      assert.equal(
        await store.report(region, "sentinel", { name: "app-b", id: "" }, sentinelReport(1)),
        false,
      );
      assert.equal(
        await store.report(region, "sentinel", { name: "app-a", id: "a" }, sentinelReport(2)),
        true,
      );
      assert.deepEqual(await reportOf(other, region, "sentinel", "a"), sentinelReport(2));
    },
  );
}

function agents(holds: Holds): void {
  holds("heartbeat and state of the agent are kept, each with its time", async ({ store, other, region }) => {
    const mine = async () => (await other.agents()).find((agent) => agent.region === region);
    const none = { deployment: 0n, sentinel: 0n, policy: 0n, route: 0n };
    assert.deepEqual(await mine(), { region, newestVersion: 0n, newestOfKind: none });
    await store.put(region, "deployment", deployment("a"), author);
    await store.reportHeartbeat(region, 5);
    const report = create(ReportAgentStateRequestSchema, {
      state: { instanceId: "ins_1", version: "1.2.3" },
    });
    await store.reportAgent(region, { report, atMs: 6 });
    const { known, ...record } = (await mine()) ?? assert.fail("there is none");
    assert.equal(known?.atMs, 6);
    assert.deepEqual(record, {
      region,
      newestVersion: 1n,
      newestOfKind: { ...none, deployment: 1n },
      heartbeatAtMs: 5,
      heardSinceMs: 5,
      state: { report, atMs: 6 },
    });
  });

  holds("standbys are kept, the last heard first, and no more than ten", async ({ store, other, region }) => {
    const kept = async () =>
      (await other.agents()).find((agent) => agent.region === region)?.standbys?.map(({ atMs }) => atMs);
    const say = (instanceId: string, atMs: number) =>
      store.reportStandby(region, { instanceId, version: "1.2.3", atMs });
    await say("ins_1", 5);
    await say("ins_2", 6);
    await say("ins_1", 7);
    assert.deepEqual(await kept(), [7, 6]);
    for (let number = 10; number < 30; number++) await say(`ins_${number}`, number);
    assert.deepEqual(await kept(), [29, 28, 27, 26, 25, 24, 23, 22, 21, 20]);
  });
}

function reportsInOrder(holds: Holds): void {
  holds("a report of an earlier leader, and one that a retry overtook, change nothing", async (open) => {
    const { store, other, region } = open;
    await store.put(region, "deployment", deployment("a"), { by: "ann", atMs: 10 });
    const report = (pod: string, term: bigint, instanceId: string, number: bigint) =>
      store.report(
        region,
        "deployment",
        { name: "app-a", id: "" },
        { exists: true, instances: [instance(pod, "", Status.RUNNING)], atMs: 11 },
        { incarnation: 1n, term, instance: instanceId, number },
      );
    const shown = async () => (await other.object(region, "deployment", "a"))?.report?.instances[0]?.k8sName;
    assert.ok(await report("first", 1n, "one", 1n));
    assert.ok(await report("retried", 1n, "one", 3n));
    assert.ok(await report("overtaken", 1n, "one", 2n), "it is answered as a success");
    assert.equal(await shown(), "retried");
    assert.ok(await report("new leader", 2n, "two", 1n));
    assert.ok(await report("late", 1n, "one", 4n));
    assert.equal(await shown(), "new leader");
    const entries = await other.history(region, { kind: "deployment", id: "a", limit: 10 });
    assert.deepEqual(
      entries.map(({ event }) => event),
      ["reported", "set"],
    );
  });
}

function reportsTogether(holds: Holds): void {
  holds("reports that come together end like as many that come alone", async ({ store, other, region }) => {
    const together = `${region}-together`;
    await store.registerRegion(together);
    const ids = ["a", "b", "c"];
    for (const each of [region, together])
      for (const id of ids) await store.put(each, "deployment", deployment(id), { by: "ann", atMs: 10 });
    const random = createSeededRandom(18);
    const oneOf = <T>(values: readonly T[]) => values[Math.floor(random.next() * values.length)] as T;
    let atMs = 11;
    const received = () => {
      const [id, number] = [oneOf([...ids, "unknown"]), BigInt(Math.floor(random.next() * 60))];
      const pods = Array.from({ length: Math.floor(random.next() * 4) }, (_, pod) =>
        instance(`${id}-${pod}`, oneOf(["", "1:1", "2:1", "3:1"]), oneOf([Status.RUNNING, Status.PENDING])),
      );
      atMs += 1;
      return {
        name: `app-${id}`,
        id: oneOf(["", id, "b"]),
        report: { exists: random.next() > 0.2, instances: pods, atMs },
        rank: oneOf([undefined, { incarnation: 1n, term: 1n, instance: "one", number }]),
      };
    };
    const ofRegion = async (each: string) => ({
      objects: (await other.objects(each, "deployment", "", 10)).map(({ report }) => report),
      outcomes: await Promise.all(
        ids.map(async (id) => (await other.history(each, { kind: "deployment", id, limit: 1 }))[0]?.outcome),
      ),
    });
    for (let round = 0; round < 40; round++) {
      const reports = Array.from({ length: 1 + Math.floor(random.next() * 6) }, received);
      const alone: boolean[] = [];
      for (const one of reports)
        alone.push(await store.report(region, "deployment", one, one.report, one.rank));
      assert.deepEqual(await store.reportMany(together, "deployment", reports), alone);
      assert.deepEqual(await ofRegion(together), await ofRegion(region), `round ${round}`);
    }
    assert.deepEqual(await store.reportMany(together, "deployment", []), []);
    await assert.rejects(store.reportMany("x", "deployment", [received()]), hasCode("unknown_region"));
  });
}

function incarnations(holds: Holds): void {
  holds("of several who replace an incarnation one succeeds, and streams wake", async (open) => {
    const { store, other, region } = open;
    const before = await store.incarnation();
    assert.ok(before !== undefined && !before.isReplica);
    await store.put(region, "deployment", deployment("a"), { by: "ann", atMs: 10 });
    assert.equal((await other.find(region, "deployment", "a")).incarnation?.id, before.id);
    const { counter } = await other.changesSince(region, "deployment", 0n, 10);
    const woken = other.waitForChange(region, counter, AbortSignal.timeout(20_000));
    const start = { replaces: before.id, above: before.ordinal + 7n, reason: "requested" } as const;
    const started = await Promise.all(
      [store, other, store, other].map((each) => each.startIncarnation(start)),
    );
    assert.equal(new Set(started.map((each) => each?.id)).size, 1);
    const [after] = started;
    assert.ok(after !== undefined && after.ordinal > before.ordinal + 7n);
    assert.deepEqual(
      [after.parent, (await other.find(region, "deployment", "a")).incarnation?.id],
      [before.id, after.id],
    );
    assert.equal((await store.startIncarnation(start))?.id, after.id, "the old one was replaced already");
    await woken;
  });
}

function history(holds: Holds): void {
  holds(
    "the history says who did what, and what agents made of it, once for each new outcome",
    async (open) => {
      const { store, other, region } = open;
      await store.put(region, "deployment", deployment("a"), { by: "ann", atMs: 10 });
      const report = (status: Status, atMs: number) =>
        store.report(
          region,
          "deployment",
          { name: "app-a", id: "" },
          {
            exists: true,
            instances: [instance("p", "", status)],
            atMs,
          },
        );
      await report(Status.PENDING, 11);
      await report(Status.RUNNING, 12);
      await report(Status.RUNNING, 13);
      await store.stop(region, "deployment", "a", { by: "bob", atMs: 14 });
      await store.put(region, "deployment", deployment("b"), { by: "ann", atMs: 15 });
      await store.remove(region, "deployment", "a", { by: "bob", atMs: 16 });
      const entries = await other.history(region, { kind: "deployment", id: "a", limit: 10 });
      assert.deepEqual(
        entries.map(({ by, atMs, version, event, outcome }) =>
          `${atMs} ${by} ${event} v${version} ${outcome}`.trim(),
        ),
        [
          "16 bob removed v2",
          "14 bob stopped v2",
          "12 agent reported v1 1 running",
          "11 agent reported v1 1 pending",
          "10 ann set v1",
        ],
      );
      assert.deepEqual(
        (await other.history(region, { limit: 2 })).map(({ id }) => id),
        ["a", "b"],
      );
    },
  );

  holds("no more history is kept than was asked for, by age and by number", async ({ store, region }) => {
    for (let atMs = 1; atMs <= 10; atMs++) {
      const spec = deployment("a", { replicas: atMs });
      await store.put(region, "deployment", spec, { by: "ann", atMs: 1e15 + atMs });
    }
    const times = async () => (await store.history(region, { limit: 100 })).map(({ atMs }) => atMs - 1e15);
    await store.trimHistory({ ageMaxMs: 6, entriesMax: 100 }, 1e15 + 10);
    assert.deepEqual(await times(), [10, 9, 8, 7, 6, 5, 4]);
    await store.trimHistory({ ageMaxMs: 1e15, entriesMax: 3 }, 1e15 + 10);
    assert.deepEqual(await times(), [10, 9, 8]);
    assert.equal((await store.rows(region, "deployment")).length, 1, "only the history is trimmed");
  });
}

const seen = (rows: readonly Row<KindName>[]) => rows.map(({ id, version }) => `${id}@${version}`);
const ascending = (a: bigint, b: bigint) => Number(a - b);
const sentinelReport = (availableReplicas: number) => ({
  availableReplicas,
  health: Health.HEALTHY,
  runningImage: "gate:1",
  atMs: 9,
});

function reportDeployment(store: Store, region: string, name: string, report: ReportOf<"deployment">) {
  return store.report(region, "deployment", { name, id: "" }, report);
}
