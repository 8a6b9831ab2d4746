// What every store does for apps: an app and the rows of its deployments change together, or not at all.
import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import {
  ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ApplyRoute_Expose as Expose } from "../../src/gen/ctrl/v1/route_pb.ts";
import { type AppSpec, AppSpecSchema, Release_Phase as Phase } from "../../src/gen/krane/admin/v1/app_pb.ts";
import { noGateway } from "../../src/kinds/route/report.ts";
import { firstNumber } from "../../src/server/apps/app-rules.ts";
import { advanceReleases } from "../../src/server/apps/release-steps.ts";
import { withSpec } from "../../src/server/apps/releases.ts";
import { createSpec } from "../../src/server/kind-messages.ts";
import type { AppFacts, Store } from "../../src/server/store.ts";
import { deployment, type Holds, hasCode, historyLines, policy, stateAt } from "./store-fixtures.ts";

const id = "app_web";
const startMs = 1_700_000_000_000;
const author = { by: "ann", atMs: startMs };
const { signal } = new AbortController();

const specOf = (
  image: string,
  more: { readonly k8sName?: string; readonly deploymentId?: string } = {},
): AppSpec =>
  create(AppSpecSchema, {
    policy: { readySeconds: 10, deadlineSeconds: 300, drainSeconds: 20 },
    template: {
      deploymentId: id,
      k8sName: "web",
      k8sNamespace: "acme",
      environmentId: "env_1",
      image,
      replicas: 1,
      ...more,
    },
  });

const applying =
  (spec: AppSpec) =>
  ({ app, leftIds }: AppFacts) =>
    withSpec(app, spec, { ...author, cause: "applied", secrets: new Uint8Array() }, firstNumber(id, leftIds));

const apply = (store: Store, region: string, spec: AppSpec) =>
  store.changeApp(region, spec.template?.deploymentId ?? id, applying(spec), author);

async function running(store: Store, region: string): Promise<readonly string[]> {
  const rows = await store.rows(region, "deployment");
  return rows.filter(({ desired }) => desired === "running").map((row) => row.id);
}

/** As an agent that has applied everything, and whose pods run. */
async function settle(store: Store, region: string, atMs: number, ...others: string[]): Promise<void> {
  for (const { spec } of await store.rows(region, "deployment")) {
    const status = Status.RUNNING;
    const pod = create(InstanceSchema, { k8sName: `${spec.k8sName}-x`, address: spec.k8sName, status });
    const report = { exists: true, instances: [pod], atMs };
    await store.report(region, "deployment", { name: spec.k8sName, id: "" }, report);
  }
  const [{ newestVersion = 0n } = {}] = await store.agents(region);
  const controllers = ["deployments", ...others].map((name) => ({
    name,
    stream: { settledUpTo: newestVersion },
  }));
  await store.reportAgent(region, stateAt(atMs, { state: { instanceId: "ins_1", controllers } }));
}

async function phases(store: Store, region: string): Promise<readonly (readonly [number, Phase])[]> {
  const { app } = await store.app(region, id);
  return (app?.releases ?? []).map(({ number, phase }) => [number, phase] as const);
}

/** The rows of routes, as lines. */
async function routeLines(store: Store, region: string): Promise<readonly string[]> {
  const rows = await store.rows(region, "route");
  return rows.map(
    ({ spec, desired, appId }) =>
      `${spec.k8sNamespace}/${spec.k8sName} ${desired} of ${appId} to ${spec.deploymentId}, ${spec.backends.map((each) => each.deploymentId).join()}`,
  );
}

/** The agent says where the Service of the app leads. */
async function reportRoute(store: Store, region: string, deploymentId: string, atMs: number): Promise<void> {
  const report = { exists: true, deploymentId, gateway: noGateway, atMs };
  await store.report(region, "route", { name: "acme/web", id: "" }, report);
}

function routes(holds: Holds): void {
  holds(
    "the route of an app moves with its current release, in the same transaction",
    async ({ store, other, region }) => {
      const exposed = (image: string) => create(AppSpecSchema, { ...specOf(image), expose: Expose.CLUSTER });
      const step = (seconds: number) => advanceReleases(other, startMs + seconds * 1_000, signal);
      await apply(store, region, exposed("web:1"));
      assert.deepEqual(await routeLines(other, region), ["acme/web running of app_web to , app_web-1"]);
      for (const seconds of [0, 10]) {
        await settle(store, region, startMs + seconds * 1_000, "routes");
        await step(seconds);
      }
      assert.deepEqual(await routeLines(other, region), [
        "acme/web running of app_web to app_web-1, app_web-1",
      ]);
      await reportRoute(store, region, "app_web-1", startMs + 11_000);
      await apply(store, region, exposed("web:2"));
      assert.deepEqual(await routeLines(other, region), [
        "acme/web running of app_web to app_web-1, app_web-1,app_web-2",
      ]);
      for (const seconds of [12, 22, 60]) {
        await settle(store, region, startMs + seconds * 1_000, "routes");
        await step(seconds);
      }
      assert.deepEqual(
        await running(store, region),
        ["app_web-1", "app_web-2"],
        "the Service still leads to the first",
      );
      await reportRoute(store, region, "app_web-2", startMs + 61_000);
      assert.equal((await other.app(region, id)).route?.report?.deploymentId, "app_web-2");
      for (const seconds of [61, 81]) {
        await settle(store, region, startMs + seconds * 1_000, "routes");
        await step(seconds);
      }
      assert.deepEqual(await running(store, region), ["app_web-2"]);
      assert.deepEqual(await routeLines(other, region), [
        "acme/web running of app_web to app_web-2, app_web-2",
      ]);
      await store.changeApp(region, id, () => "removed", author);
      assert.deepEqual(await routeLines(other, region), [
        "acme/web stopped of app_web to app_web-2, app_web-2",
      ]);
      // The name of a deleted app is free, also for another app.
      const successor = exposed("web:1");
      if (successor.template) successor.template.deploymentId = "app_next";
      await apply(other, region, successor);
      assert.deepEqual(await routeLines(store, region), ["acme/web running of app_next to , app_next-1"]);
    },
  );

  holds("an agent that is too old for routes keeps no release from ending", async ({ store, region }) => {
    for (const [seconds, image] of [
      [0, "web:1"],
      [10, "web:1"],
      [11, "web:2"],
      [21, "web:2"],
      [41, "web:2"],
    ] as const) {
      const atMs = startMs + seconds * 1_000;
      await apply(store, region, create(AppSpecSchema, { ...specOf(image), expose: Expose.CLUSTER }));
      await settle(store, region, atMs);
      await advanceReleases(store, atMs, signal);
    }
    assert.deepEqual(await running(store, region), ["app_web-2"]);
  });

  holds("the name of another route is refused before anything is written", async ({ store, region }) => {
    const taken = createSpec("route", { k8sNamespace: "acme", k8sName: "web", routeId: "rt_own" });
    await store.change(region, "route", "rt_own", () => ({ spec: taken, desired: "running" }), author);
    const spec = create(AppSpecSchema, { ...specOf("web:1"), expose: Expose.CLUSTER });
    await assert.rejects(apply(store, region, spec), hasCode("name_taken"));
    assert.equal((await store.app(region, id)).app, undefined);
    assert.deepEqual(await running(store, region), []);
  });
}

export function defineAppContract(holds: Holds): void {
  routes(holds);
  rows(holds);
  releases(holds);
  outages(holds);
  refusals(holds);
  removal(holds);
}

function rows(holds: Holds): void {
  holds(
    "a release is a row of its own, and numbers are taken in one order",
    async ({ store, other, region }) => {
      await apply(store, region, specOf("web:1"));
      await apply(other, region, specOf("web:1"));
      const { app, deployments } = await other.app(region, id);
      assert.equal(app?.releases.length, 1, "the same again changes nothing");
      assert.deepEqual(
        deployments.map(({ row }) => [row.id, row.appId, row.version, row.spec.image]),
        [["app_web-1", id, 1n, "web:1"]],
      );
      await apply(other, region, specOf("web:2"));
      assert.deepEqual(await running(store, region), ["app_web-2"], "the first one never became current");
      assert.deepEqual(
        (await store.apps(region, "", 10)).map((facts) => facts.deployments.map(({ row }) => row.id)),
        [["app_web-2"]],
      );
      assert.deepEqual(await store.apps(region, id, 10), []);
      const lines = (await historyLines(store, region)).filter((line) => line.includes(" app "));
      assert.deepEqual(lines, [
        "ann set app app_web v1",
        "ann release_started app app_web v1 release 1",
        "ann set app app_web v2",
        "ann release_ended app app_web v2 release 1",
        "ann release_started app app_web v2 release 2",
      ]);
    },
  );
}

function releases(holds: Holds): void {
  holds("several servers make a release current once", async ({ store, other, region }) => {
    const both = (seconds: number) => {
      const nowMs = startMs + seconds * 1_000;
      return Promise.all([store, other, store, other].map((each) => advanceReleases(each, nowMs, signal)));
    };
    await apply(store, region, specOf("web:1"));
    assert.deepEqual(
      (await other.activeApps()).filter((each) => each.region === region),
      [{ region, id }],
    );
    await settle(store, region, startMs);
    await both(0);
    await both(10);
    assert.deepEqual(await phases(other, region), [[1, Phase.CURRENT]]);
    await apply(other, region, specOf("web:2"));
    await both(11);
    assert.deepEqual(await phases(store, region), [
      [1, Phase.CURRENT],
      [2, Phase.STARTING],
    ]);
    await settle(store, region, startMs + 12_000);
    await both(12);
    await both(22);
    assert.deepEqual(await phases(store, region), [
      [1, Phase.DRAINING],
      [2, Phase.CURRENT],
    ]);
    assert.deepEqual((await running(store, region)).toSorted(), ["app_web-1", "app_web-2"]);
    await both(42);
    assert.deepEqual(await running(other, region), ["app_web-2"]);
    assert.deepEqual(
      (await store.activeApps()).filter((each) => each.region === region),
      [],
    );
    const lines = (await historyLines(store, region)).filter((line) => line.startsWith("releases "));
    assert.equal(lines.filter((line) => line.includes("release_current")).length, 2, lines.join("\n"));
  });

  holds("no release becomes current or fails while the agent is silent", async ({ store, region }) => {
    await apply(store, region, specOf("web:1"));
    await settle(store, region, startMs);
    await advanceReleases(store, startMs, signal);
    const dayMs = 86_400_000;
    for (const afterMs of [300_000, 600_000, dayMs]) {
      await advanceReleases(store, startMs + afterMs, signal);
      assert.deepEqual(await phases(store, region), [[1, Phase.STARTING]]);
    }
    assert.deepEqual(await running(store, region), ["app_web-1"]);
    await settle(store, region, startMs + dayMs);
    await advanceReleases(store, startMs + dayMs, signal);
    assert.deepEqual(await phases(store, region), [[1, Phase.STARTING]]);
    await advanceReleases(store, startMs + dayMs + 10_000, signal);
    assert.deepEqual(await phases(store, region), [[1, Phase.CURRENT]]);
  });
}

/** Both are the first sign of life after an outage in which nobody could store anything, and no server took a step. */
const signsOfLife = {
  "a heartbeat": (store: Store, region: string, atMs: number) => store.reportHeartbeat(region, atMs),
  "a report": (store: Store, region: string, atMs: number) => store.reportAgent(region, stateAt(atMs)),
};

function outages(holds: Holds): void {
  for (const [name, hear] of Object.entries(signsOfLife)) {
    holds(
      `an outage of the database does not count as time, if ${name} ends it`,
      async ({ store, region }) => {
        await apply(store, region, specOf("web:1"));
        for (const afterMs of [0, 30_000]) {
          await hear(store, region, startMs + afterMs);
          await advanceReleases(store, startMs + afterMs, signal);
        }
        const backMs = startMs + 3_600_000;
        await hear(store, region, backMs);
        for (const afterMs of [0, 30_000, 60_000]) {
          await hear(store, region, backMs + afterMs);
          await advanceReleases(store, backMs + afterMs, signal);
          assert.deepEqual(await phases(store, region), [[1, Phase.STARTING]], `after ${afterMs} ms`);
        }
        const deadlineMs = backMs + 300_000;
        for (let atMs = backMs + 90_000; atMs <= deadlineMs; atMs += 30_000) await hear(store, region, atMs);
        await advanceReleases(store, deadlineMs - 1, signal);
        assert.deepEqual(await phases(store, region), [[1, Phase.STARTING]]);
        await advanceReleases(store, deadlineMs, signal);
        assert.deepEqual(await phases(store, region), [[1, Phase.FAILED]]);
      },
    );
  }
}

function refusals(holds: Holds): void {
  holds("a refused release changes neither the app nor a row", async ({ store, region }) => {
    await store.put(region, "deployment", deployment("app_web-1", { k8sName: "mine" }), author);
    await assert.rejects(apply(store, region, specOf("web:1")), hasCode("name_taken"));
    assert.equal((await store.app(region, id)).app, undefined);
    assert.deepEqual(await running(store, region), ["app_web-1"]);
    await apply(store, region, specOf("web:1", { deploymentId: "app_other" }));
    await assert.rejects(
      apply(store, region, specOf("web:1", { deploymentId: "app_third" })),
      /app app_other already has the name acme\/web/,
    );
    assert.deepEqual((await running(store, region)).toSorted(), ["app_other-1", "app_web-1"]);
  });

  holds("a dry run tells what would be, and changes nothing", async ({ store, region }) => {
    const tried = await store.changeApp(region, id, applying(specOf("web:1")), author, { dryRun: true });
    assert.equal(tried.after?.releases.length, 1);
    assert.equal((await store.app(region, id)).app, undefined);
    assert.deepEqual(await store.rows(region, "deployment"), []);
    assert.equal((await store.changesSince(region, "deployment", 0n, 10)).counter, 0n);
  });
}

function removal(holds: Holds): void {
  holds(
    "a removed app stops its releases and their policies, and its numbers do not come again",
    async ({ store, other, region }) => {
      await apply(store, region, specOf("web:1"));
      await store.put(region, "policy", policy("p", "acme"), author, { deploymentId: "app_web-1" });
      const { stopped, after } = await other.changeApp(region, id, () => "removed", author);
      assert.equal(after, undefined);
      assert.deepEqual(
        stopped.map((row) => [row.id, row.version]),
        [["app_web-1", 3n]],
      );
      assert.deepEqual(await running(store, region), []);
      assert.equal((await store.row(region, "policy", "p"))?.desired, "stopped");
      await apply(store, region, specOf("web:1"));
      assert.deepEqual(await running(store, region), ["app_web-2"]);
    },
  );

  holds("an environment with an app is in use", async ({ store, region }) => {
    const content = { workspaceId: "ws", projectId: "p", secrets: new Map() };
    await store.changeEnvironment(region, "env_1", () => content, author);
    await apply(store, region, specOf("web:1"));
    assert.equal((await store.app(region, id)).environment?.id, "env_1");
    await store.stop(region, "deployment", "app_web-1", author);
    await assert.rejects(store.removeEnvironment(region, "env_1", author), /app app_web still uses/);
    const moved = () => ({ ...content, workspaceId: "other" });
    await assert.rejects(
      store.changeEnvironment(region, "env_1", moved, author),
      /must stay "ws": app app_web still uses/,
    );
    await store.changeApp(region, id, () => "removed", author);
    assert.equal(await store.removeEnvironment(region, "env_1", author), true);
  });

  holds("apps of an unknown region are refused", async ({ store }) => {
    const nowhere = "nowhere.test";
    await assert.rejects(apply(store, nowhere, specOf("web:1")), hasCode("unknown_region"));
    await assert.rejects(store.app(nowhere, id), hasCode("unknown_region"));
    await assert.rejects(store.apps(nowhere, "", 1), hasCode("unknown_region"));
  });
}
