// Apps through the command line and the admin API, from the first release to the deletion.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { main } from "../../../src/cli/main.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { ReportDeploymentStatusRequest_Update_Instance_Status as Status } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectKind } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { advanceReleases } from "../../../src/server/apps/release-steps.ts";
import { type AdminServer, startAdminServer } from "../../support/admin-server.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { hasCode } from "../../support/refusals.ts";

const region = "local.dev";

const environment = `apiVersion: krane/v1
kind: Environment
id: env_demo
workspace: ws_demo
project: proj_demo
`;
const app = (more: string, name = "web") => `apiVersion: krane/v1
kind: App
id: app_${name}
name: ${name}
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
${more}`;
const documents = (more: string) => `${environment}---\n${app(more)}`;

class World {
  readonly server: AdminServer;
  private readonly clock = createSystemClock();

  constructor(server: AdminServer) {
    this.server = server;
  }

  async run(argv: readonly string[], text = "") {
    const { url, tokens } = this.server;
    const io = new FakeIo({ "app.yaml": text });
    const env = { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite, KRANE_REGION: region };
    const code = await main(argv, env, io);
    return { code, stdout: io.stdout.text, stderr: io.stderr.text };
  }

  apply(text: string, ...more: readonly string[]) {
    return this.run(["apply", "-f", "app.yaml", ...more], text);
  }

  /**
   * What an agent reports that has applied everything; deployments of the bad image cannot run. With `routes`, it also
   * moves the Services of routes.
   */
  async report(routes?: "routes"): Promise<void> {
    const agent = this.server.agentClient();
    const { objects } = await this.server.client().listObjects({ region });
    let cursor = 0n;
    for (const { name, namespace, version, spec } of objects) {
      if (spec?.spec.case === "route" && routes !== undefined) {
        const { deploymentId } = spec.spec.value;
        await agent.reportRouteStatus({ k8sNamespace: namespace, k8sName: name, deploymentId, exists: true });
        cursor = version > cursor ? version : cursor;
      }
      if (spec?.spec.case !== "deployment") continue;
      const isBad = spec.spec.value.image.endsWith(":bad");
      const instances = Array.from({ length: spec.spec.value.replicas }, (_, index) => ({
        k8sName: `${name}-${index}`,
        address: `${name}-${index}.demo:8080`,
        status: isBad ? Status.FAILED : Status.RUNNING,
      }));
      await agent.reportDeploymentStatus({ change: { case: "update", value: { k8sName: name, instances } } });
      cursor = version > cursor ? version : cursor;
    }
    const names = ["deployments", "sentinels", "cilium", ...(routes === undefined ? [] : [routes])];
    const controllers = names.map((name) => ({ name, stream: { cursor } }));
    await agent.reportAgentState({ state: { controllers } });
    await agent.heartbeat({ region: { platform: "dev", name: "local" } });
  }

  /** Lets the release that starts become current, and the one before it end. */
  async becomeCurrent(): Promise<void> {
    await this.report();
    await this.pass(10);
    await this.pass(60);
    await this.report();
  }

  /** Lets so many seconds pass, as far as releases are concerned. */
  async pass(seconds: number): Promise<void> {
    const { signal } = new AbortController();
    const nowMs = this.clock.wallMs();
    await advanceReleases(this.server.store, nowMs, signal);
    await advanceReleases(this.server.store, nowMs + seconds * 1_000, signal);
  }
}

async function withWorld(t: { after(work: () => Promise<void>): void }): Promise<World> {
  const server = await startAdminServer({ regions: [region] });
  t.after(() => server.stop());
  return new World(server);
}

test("an app with a route says whether its traffic has moved, and that an agent is too old for it", async (t) => {
  const world = await withWorld(t);
  const exposed = (image: string) => `image: ${image}\nreplicas: 1\nexpose: cluster\n`;
  const why = async () => (await world.run(["why", "app/web"])).stdout;
  await world.apply(documents(exposed("web:1")));
  await world.report();
  await world.pass(10);
  assert.match((await world.run(["get", "apps"])).stdout, /1\/1 +Moving traffic +1 .*web:1/);
  assert.match(
    await why(),
    /its traffic has not moved there: The agent of region local.dev is too old for routes\./,
  );
  await world.report("routes");
  assert.match((await world.run(["get", "apps"])).stdout, /1\/1 +Ready +1 .*web:1/);
  assert.match(await why(), /Traffic is at release 1\./);
  assert.match(
    (await world.run(["describe", "app/web"])).stdout,
    /Route:? +http:\/\/web\.demo leads to app_web-1/,
  );
  assert.match((await world.run(["get", "routes"])).stdout, /demo\/web +Ready +app_web-1/);

  await world.apply(app(exposed("web:2")));
  await world.report("routes");
  await world.pass(10);
  await world.pass(600);
  assert.equal((await world.server.client().getApp({ region, id: "app_web" })).app?.deployments.length, 2);
  assert.match((await world.run(["get", "apps"])).stdout, /1\/1 +Moving traffic +2 .*web:2/);
  await world.report("routes");
  await world.pass(10);
  await world.pass(60);
  assert.equal((await world.server.client().getApp({ region, id: "app_web" })).app?.deployments.length, 1);
  await world.report("routes");
  assert.match(await why(), /Traffic is at release 2\./);

  const { code, stderr } = await world.run(["delete", "route", "demo/web", "--yes"]);
  assert.notEqual(code, 0);
  assert.match(stderr, /is the route of app app_web; change or delete the app/);
  assert.match(
    (await world.apply(app("image: web:2\nreplicas: 1\nexpose: world\n"))).stderr,
    /expose must be environment, cluster or gateway, but is "world"/,
  );
  await world.apply(app("image: web:2\nreplicas: 1\n"));
  assert.match((await world.run(["get", "routes"])).stdout, /demo\/web +Deleting/);
});

test("an app is applied, released, shown and deleted", async (t) => {
  const world = await withWorld(t);
  const first = await world.apply(documents("image: web:1\nreplicas: 2\n"));
  assert.equal(
    first.stdout,
    "environment/env_demo created (version 1)\napp/app_web created (release 1)\n",
    first.stderr,
  );
  assert.match(
    (await world.run(["get", "apps"])).stdout,
    /^app_web +demo\/web +0\/2 +Releasing +1 +\d+s +web:1$/m,
  );
  await world.report();
  await world.pass(10);
  assert.match(
    (await world.run(["get", "apps"])).stdout,
    /^app_web +demo\/web +2\/2 +Ready +1 +\d+s +web:1$/m,
  );
  assert.match(
    (await world.apply(documents("image: web:1\nreplicas: 2\n"))).stdout,
    /app\/app_web unchanged/,
  );

  const diff = await world.run(["diff", "-f", "app.yaml"], app("image: web:2\nreplicas: 2\n"));
  assert.equal(diff.stdout, 'app/app_web\n  image: "web:1" → "web:2"\n');
  assert.match((await world.apply(app("image: web:2\nreplicas: 2\n"))).stdout, /configured \(release 2\)/);
  assert.match((await world.run(["get", "app", "web"])).stdout, /2\/2 +Releasing +1 → 2 +\d+s +web:2/);
  await world.report();
  await world.pass(10);
  const described = (await world.run(["describe", "app/web"])).stdout;
  assert.match(described, /^ {2}2 +Current .* web:2$/m);
  assert.match(described, /^ {2}1 +Draining .* web:1$/m);
  await world.pass(30);
  assert.match((await world.run(["describe", "app/web"])).stdout, /^ {2}1 +Retired .* web:1$/m);
  assert.match((await world.run(["events", "app", "web"])).stdout, /release_ended .*release 1/);

  const gone = await world.run(["delete", "app", "app_web", "--yes"]);
  assert.equal(gone.stdout, "app/app_web is being deleted\n");
  assert.equal((await world.run(["get", "app", "web"])).code, 3);
  const { objects } = await world.server.client().listObjects({ region });
  assert.ok(
    objects.every(({ desired }) => desired === 2),
    "its deployment is to be deleted",
  );
});

test("only another number of pods scales the release that runs", async (t) => {
  const world = await withWorld(t);
  await world.apply(documents("image: web:1\nreplicas: 2\n"));
  await world.report();
  await world.pass(10);
  const scaled = await world.apply(app("image: web:1\nreplicas: 3\n"));
  assert.match(scaled.stdout, /app\/app_web configured \(version \d+\)/);
  await world.report();
  assert.match((await world.run(["get", "apps"])).stdout, /3\/3 +Ready +1 /);
  const again = await world.run(["scale", "app/web", "--replicas", "5"]);
  assert.match(again.stdout, /^app\/app_web scaled from 3 to 5 \(version \d+\)\n$/, again.stderr);
  await world.report();
  assert.match((await world.run(["get", "apps"])).stdout, /5\/5 +Ready +1 /);
});

test("a release that fails leaves the app on what ran, and why says so", async (t) => {
  const world = await withWorld(t);
  await world.apply(documents("image: web:1\n"));
  await world.report();
  await world.pass(10);
  await world.apply(app("image: web:bad\n"));
  await world.report();
  await world.pass(30);
  assert.match((await world.run(["get", "apps"])).stdout, /1\/1 +Release 2 failed +1 /);
  const why = (await world.run(["why", "web"])).stdout;
  assert.match(why, /^app\/app_web \(demo\/web\): Release 2 failed; the app stays on release 1\.$/m);
  assert.match(why, /^Cause: +release-failed$/m);
  assert.match(why, /^Reason: +its pods cannot run$/m);
});

test("the same app, applied after its release failed, is tried again, and --wait tells how that ends", async (t) => {
  const world = await withWorld(t);
  await world.apply(documents("image: web:1\n"));
  await world.report();
  await world.pass(10);
  await world.apply(app("image: web:bad\n"));
  await world.report();
  await world.pass(30);
  const waiting = world.apply(app("image: web:bad\n"), "--wait");
  await eventually("release 3 has started", async () => {
    const { app: view } = await world.server.client().getApp({ region, id: "app_web" });
    assert.equal(view?.app?.releases.at(-1)?.number, 3);
  });
  await world.report();
  await world.pass(30);
  const { code, stdout, stderr } = await waiting;
  assert.equal(code, 1);
  assert.match(stdout, /app\/app_web configured \(release 3\)/);
  assert.match(stderr, /app\/app_web: release 3 failed: its pods cannot run; the app stays on release 1/);
});

test("a release has the secrets that its environment had when it started, and get shows when they are older", async (t) => {
  const world = await withWorld(t);
  const client = world.server.client();
  await world.apply(documents("image: web:1\n"));
  await world.report();
  await world.pass(10);
  await client.setSecret({ region, environmentId: "env_demo", name: "KEY", encrypted: "c2VhbGVk" });
  assert.match((await world.run(["get", "apps"])).stdout, /Ready +1, older secrets /);
  await world.apply(app("image: web:2\n"));
  await world.report();
  await world.pass(10);
  assert.match((await world.run(["get", "apps"])).stdout, /Ready +2 /);
  const json = (await world.run(["get", "app", "web", "-o", "json"])).stdout;
  assert.doesNotMatch(json, /c2VhbGVk/);
  const { object } = await client.getObject({
    ref: { region, kind: ObjectKind.DEPLOYMENT, id: "app_web-2" },
  });
  assert.deepEqual([object?.secretNames, object?.appId], [["KEY"], "app_web"]);
});

test("a release is changed through its app only", async (t) => {
  const world = await withWorld(t);
  await world.apply(documents("image: web:1\n"));
  const client = world.server.client();
  const ref = { region, kind: ObjectKind.DEPLOYMENT, id: "app_web-1" };
  const refused = hasCode(Code.FailedPrecondition, /is a release of app app_web/);
  await assert.rejects(client.scaleObject({ ref, replicas: 5 }), refused);
  await assert.rejects(client.deleteObject({ ref }), refused);
  const { object } = await client.getObject({ ref });
  assert.ok(object?.spec !== undefined);
  await assert.rejects(client.applyObject({ region, spec: object.spec }), refused);
});

test("what is wrong with an app is named by its field", async (t) => {
  const world = await withWorld(t);
  const { stderr } = await world.apply(
    app("image: web:1\nrelease: {readyFor: 2d, history: 99, drain: 1s}\n"),
  );
  assert.match(stderr, /release\.readyFor must be a duration in whole seconds/);
  assert.match(stderr, /release\.drain is not a known field/);
  const kept = await world.apply(app("image: web:1\nrelease: {history: 99}\n"));
  assert.match(kept.stderr, /release\.history must be from 1 to 20, but is 99/);
  const late = await world.apply(app("image: web:1\n"));
  assert.equal(late.code, 1);
  assert.match(late.stderr, /no environment env_demo in region local\.dev/);
  await world.apply(documents("image: web:1\n"));
  const taken = app("image: web:1\n").replace("id: app_web", "id: app_two");
  assert.match((await world.apply(taken)).stderr, /app app_web already has the name demo\/web/);
  const moved = app("image: web:1\n").replace("namespace: demo", "namespace: other");
  assert.match((await world.apply(moved)).stderr, /must stay "demo" while app app_web exists/);
  const long = await world.apply(app("image: web:1\n", "w".repeat(60)));
  assert.match(long.stderr, /name must have at most 48 characters/);
});

/** An app whose release 1 is current. */
async function runningApp(t: { after(work: () => Promise<void>): void }): Promise<World> {
  const world = await withWorld(t);
  await world.apply(documents("image: web:1\nreplicas: 2\n"));
  await world.becomeCurrent();
  return world;
}

test("krane release starts a release with another image, and waits for it, however the app is named", async (t) => {
  const world = await runningApp(t);
  const waiting = world.run(["release", "web", "--image", "web:2", "--wait"]);
  await eventually("release 2 has started", async () =>
    assert.match((await world.run(["get", "apps"])).stdout, /Releasing +1 → 2 /),
  );
  await world.becomeCurrent();
  const { code, stdout, stderr } = await waiting;
  assert.equal(code, 0, stderr);
  assert.equal(stdout, "app/app_web release 2 started\napp/app_web is ready, on release 2, 2/2 pods\n");
  for (const [index, name] of [["app/web"], ["app", "web"], ["app_web"], ["demo/web"]].entries()) {
    const again = await world.run(["release", ...name, "--image", `web:${index + 3}`]);
    assert.equal(again.stdout, `app/app_web release ${index + 3} started\n`, again.stderr);
  }
  const same = await world.run(["release", "web", "--image", "web:2"]);
  assert.equal(same.stdout, "app/app_web stays on release 2, which runs this\n");
});

test("krane release says what is missing or wrong", async (t) => {
  const world = await runningApp(t);
  assert.equal((await world.run(["release", "web"])).code, 64);
  assert.equal((await world.run(["release", "web", "--image", "web:2", "--restart"])).code, 64);
  assert.equal((await world.run(["release", "other", "--restart"])).code, 3);
  const bad = await world.run(["release", "web", "--image", "not an image"]);
  assert.equal(bad.code, 1);
  assert.match(bad.stderr, /image/);
  const guarded = await world.run(["release", "web", "--restart", "--if-version", "1"]);
  assert.equal(guarded.code, 1);
  assert.match((await world.run(["get", "apps"])).stdout, /Ready +1 /);
  const late = await world.run(["release", "web", "--image", "web:2", "--wait", "--timeout", "1ms"]);
  assert.equal(late.code, 1);
  assert.match(late.stderr, /krane: not done after 1ms: app\/app_web: release 2 is starting, /);
});

test("a restart releases the same program with the newest secrets", async (t) => {
  const world = await runningApp(t);
  const client = world.server.client();
  await client.setSecret({ region, environmentId: "env_demo", name: "KEY", encrypted: "c2VhbGVk" });
  assert.equal((await world.run(["release", "web", "--restart"])).stdout, "app/app_web release 2 started\n");
  await world.becomeCurrent();
  const ref = { region, kind: ObjectKind.DEPLOYMENT, id: "app_web-2" };
  assert.deepEqual((await client.getObject({ ref })).object?.secretNames, ["KEY"]);
  assert.equal(
    (await world.run(["rollout", "restart", "app/web"])).stdout,
    "app/app_web release 3 started\n",
  );
  assert.match((await world.run(["rollout", "history", "web"])).stdout, /^3 +Starting .* restart .* web:1$/m);
});

test("rollout undo goes back to the release before, and to any that is kept", async (t) => {
  const world = await runningApp(t);
  assert.match((await world.run(["rollout", "undo", "web"])).stderr, /has no earlier release to go back to/);
  for (const image of ["web:2", "web:3"]) {
    await world.run(["release", "web", "--image", image]);
    await world.becomeCurrent();
  }
  assert.equal((await world.run(["rollout", "undo", "web"])).stdout, "app/app_web release 4 started\n");
  await world.becomeCurrent();
  assert.match((await world.run(["get", "apps"])).stdout, /Ready +4 +\d+s +web:2$/m);
  const first = await world.run(["rollout", "undo", "web", "--to-release", "1"]);
  assert.equal(first.stdout, "app/app_web release 5 started\n", first.stderr);
  const history = (await world.run(["rollout", "history", "web"])).stdout;
  assert.match(history, /^5 +Starting .* undo to 1 .* web:1$/m);
  // Undone before it is current: the app stays on what runs.
  assert.equal(
    (await world.run(["rollout", "undo", "web"])).stdout,
    "app/app_web stays on release 4, which runs this\n",
  );
  assert.match((await world.run(["rollout", "undo", "web", "--to-release", "99"])).stderr, /no release 99/);
});

test("rollout undo moves back at once while the pods of the release before are still ready", async (t) => {
  const world = await withWorld(t);
  const client = world.server.client();
  const target = async () => {
    const { app: view } = await client.getApp({ region, id: "app_web" });
    return view?.route?.spec?.spec.case === "route" ? view.route.spec.spec.value.deploymentId : "";
  };
  await world.apply(documents("image: web:1\nreplicas: 2\nexpose: cluster\n"));
  await world.report("routes");
  await world.pass(10);
  await world.run(["release", "web", "--image", "web:2"]);
  await world.report("routes");
  await world.pass(10);
  await world.report("routes");
  assert.equal(await target(), "app_web-2");
  const waiting = world.run(["rollout", "undo", "web", "--wait"]);
  await eventually("the route leads back", async () => assert.equal(await target(), "app_web-1"));
  await world.report("routes");
  const { code, stdout, stderr } = await waiting;
  assert.equal(code, 0, stderr);
  assert.equal(
    stdout,
    "app/app_web is back on release 1, whose pods still run\napp/app_web is ready, on release 1, 2/2 pods\n",
  );
  const history = (await world.run(["rollout", "history", "web"])).stdout;
  assert.match(history, /^2 +Draining .*web:2\n1 +Current .*web:1$/m);
  const diff = await world.run(
    ["diff", "-f", "app.yaml"],
    app("image: web:1\nreplicas: 2\nexpose: cluster\n"),
  );
  assert.equal(diff.code, 0, "what was applied is what runs");
  assert.equal(
    (await world.run(["rollout", "undo", "web"])).stdout,
    "app/app_web is back on release 2, whose pods still run\n",
  );
  await world.report("routes");
  await world.pass(40);
  await world.pass(40);
  assert.equal((await world.run(["rollout", "undo", "web"])).stdout, "app/app_web release 3 started\n");
});

test("after a failed release, going back to what runs is no failure", async (t) => {
  const world = await runningApp(t);
  await world.apply(app("image: web:bad\nreplicas: 2\n"));
  await world.report();
  await world.pass(30);
  const failed = await world.run(["rollout", "status", "web"]);
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /release 2 failed: its pods cannot run; the app stays on release 1/);
  const retry = await world.run(["diff", "-f", "app.yaml"], app("image: web:bad\nreplicas: 2\n"));
  assert.deepEqual(
    [retry.code, retry.stdout],
    [2, "app/app_web is unchanged, but its newest release failed; apply would start release 3\n"],
  );
  const back = await world.apply(app("image: web:1\nreplicas: 2\n"), "--wait");
  assert.equal(back.code, 0, back.stderr);
  assert.match(back.stdout, /app\/app_web is ready, on release 1, 2\/2 pods\n$/);
  assert.match((await world.run(["get", "apps"])).stdout, /Ready +1 /);
  const status = await world.run(["rollout", "status", "web", "--no-wait"]);
  assert.deepEqual([status.code, status.stdout], [0, "app/app_web: on release 1, 2/2 pods\n"]);
});

test("while an app is paused nothing is released, and resume releases what was applied", async (t) => {
  const world = await runningApp(t);
  assert.equal((await world.run(["rollout", "pause", "web"])).stdout, "app/app_web paused\n");
  assert.match((await world.run(["get", "apps"])).stdout, /Ready +1, paused /);
  const applied = await world.apply(app("image: web:2\nreplicas: 3\n"), "--wait");
  assert.equal(applied.code, 1);
  assert.match(applied.stdout, /configured \(version \d+\)/);
  assert.match(applied.stderr, /its releases are paused; to resume them: krane rollout resume app\/app_web/);
  await world.report();
  await world.pass(1_000);
  assert.match((await world.run(["get", "apps"])).stdout, /3\/3 +Ready +1, paused /);
  assert.match((await world.run(["why", "web"])).stdout, /^Cause: +releases-paused$/m);
  assert.match((await world.run(["release", "web", "--restart"])).stderr, /are paused; resume them first/);
  const resumed = await world.run(["rollout", "resume", "web"]);
  assert.equal(resumed.stdout, "app/app_web resumed, release 2 started\n");
  assert.equal((await world.run(["rollout", "resume", "web"])).stdout, "app/app_web is not paused\n");
  await world.becomeCurrent();
  assert.match((await world.run(["get", "apps"])).stdout, /3\/3 +Ready +2 /);
  assert.match((await world.run(["events", "app", "web"])).stdout, / paused (?:.*\n)*.* resumed /);
});

test("an app as a document can be applied again, and its releases cannot", async (t) => {
  const world = await runningApp(t);
  const { stdout } = await world.run(["get", "app", "web", "-o", "document"]);
  assert.match(stdout, /^kind: App$/m);
  // The document also has the defaults of the release policy; that starts no release.
  assert.match((await world.apply(stdout)).stdout, /^app\/app_web configured \(version \d+\)\n/);
  assert.match((await world.apply(stdout)).stdout, /^app\/app_web unchanged /);
  assert.equal((await world.run(["get", "apps", "-o", "name"])).stdout, "app/app_web\n");
  const release = await world.run(["get", "deployment", "app_web-1", "-o", "document"]);
  assert.equal(release.code, 1);
  assert.match(
    release.stderr,
    /deployment\/app_web-1 cannot be applied: it is a pod, deleted, or a release of an app/,
  );
});

test("the id of a release is free once its app is deleted", async (t) => {
  const world = await runningApp(t);
  const client = world.server.client();
  const ref = { region, kind: ObjectKind.DEPLOYMENT, id: "app_web-1" };
  const { object } = await client.getObject({ ref });
  assert.ok(object?.spec !== undefined);
  await world.run(["delete", "app", "app_web", "--yes"]);
  await client.applyObject({ region, spec: object.spec });
  assert.equal((await client.getObject({ ref })).object?.appId, "");
});
