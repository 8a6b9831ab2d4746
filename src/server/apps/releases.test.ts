import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ApplyRoute_Expose as Expose } from "../../gen/ctrl/v1/route_pb.ts";
import {
  type App,
  type AppSpec,
  AppSpecSchema,
  Release_Phase as Phase,
} from "../../gen/krane/admin/v1/app_pb.ts";
import {
  advance,
  backTo,
  pausedOr,
  releaseBefore,
  type Sight,
  type Traffic,
  wantedDeployments,
  wantedRoute,
  withSpec,
} from "./releases.ts";

const second = 1_000;
/** A number of seconds after the beginning. */
const at = (seconds: number) => 1_700_000_000_000 + seconds * second;
const policy = { readySeconds: 10, deadlineSeconds: 60, drainSeconds: 20, history: 3 };
const template = {
  deploymentId: "app_web",
  k8sName: "web",
  k8sNamespace: "acme",
  environmentId: "env_1",
  replicas: 2,
};
const spec = (
  image: string,
  more: { readonly replicas?: number; readonly port?: number } = {},
  expose: Expose = Expose.UNSPECIFIED,
): AppSpec => create(AppSpecSchema, { policy, template: { ...template, image, ...more }, expose });
const origin = (atMs: number) => ({ by: "ann", atMs, cause: "applied", secrets: new Uint8Array() });

const ready = (): Sight => ({ state: "ready" });
const waiting = (): Sight => ({ state: "waiting", reason: "0 of 2 pods ready" });
const unknown = (): Sight => ({ state: "unknown" });
const failing = (): Sight => ({ state: "failing", reason: "CrashLoopBackOff" });

const words: ReadonlyMap<Phase, string> = new Map(
  Object.entries(Phase).map(([word, phase]) => [phase, word]),
);
const phases = (app: App) => app.releases.map(({ number, phase }) => `${number} ${words.get(phase)}`);

/** An app whose first release is current since second 10. */
function running(): App {
  const started = advance(withSpec(undefined, spec("web:1"), origin(at(0))), ready, at(0));
  return advance(started, ready, at(10));
}

test("a release becomes current after it was ready for a while, and the previous one drains and retires", () => {
  let app = withSpec(running(), spec("web:2"), origin(at(20)));
  assert.deepEqual(phases(app), ["1 CURRENT", "2 STARTING"]);
  assert.deepEqual(
    wantedDeployments(app).map(({ deploymentId, image }) => `${deploymentId} ${image}`),
    ["app_web-1 web:1", "app_web-2 web:2"],
  );
  app = advance(app, waiting, at(25));
  app = advance(app, ready, at(30));
  assert.deepEqual(phases(advance(app, ready, at(39))), ["1 CURRENT", "2 STARTING"]);
  app = advance(app, ready, at(40));
  assert.deepEqual(phases(app), ["1 DRAINING", "2 CURRENT"]);
  assert.equal(wantedDeployments(app).length, 2);
  app = advance(app, ready, at(60));
  assert.deepEqual(phases(app), ["1 RETIRED", "2 CURRENT"]);
  assert.deepEqual(
    wantedDeployments(app).map(({ deploymentId }) => deploymentId),
    ["app_web-2"],
  );
});

test("a release that is ready and then is not begins to count again", () => {
  let app = withSpec(running(), spec("web:2"), origin(at(20)));
  app = advance(app, ready, at(21));
  app = advance(app, waiting, at(29));
  app = advance(app, ready, at(31));
  assert.deepEqual(phases(advance(app, ready, at(40))), ["1 CURRENT", "2 STARTING"]);
  assert.deepEqual(phases(advance(app, ready, at(41))), ["1 DRAINING", "2 CURRENT"]);
});

test("a release that is not ready in time, keeps crashing or is refused has failed, and the app stays where it was", () => {
  const start = withSpec(running(), spec("web:2"), origin(at(20)));
  const late = advance(start, waiting, at(80));
  assert.deepEqual(phases(late), ["1 CURRENT", "2 FAILED"]);
  assert.equal(late.releases[1]?.reason, "not ready within 1m: 0 of 2 pods ready");

  let crashing = advance(start, failing, at(21));
  crashing = advance(crashing, waiting, at(30));
  crashing = advance(crashing, failing, at(50));
  assert.deepEqual(phases(crashing), ["1 CURRENT", "2 STARTING"], "30 s have not passed");
  crashing = advance(crashing, failing, at(51));
  assert.deepEqual(phases(crashing), ["1 CURRENT", "2 FAILED"]);
  assert.equal(crashing.releases[1]?.reason, "CrashLoopBackOff");

  const refused = advance(start, () => ({ state: "refused", reason: "image: no" }), at(21));
  assert.deepEqual(phases(refused), ["1 CURRENT", "2 FAILED"]);
  assert.deepEqual(
    wantedDeployments(refused).map(({ deploymentId }) => deploymentId),
    ["app_web-1"],
  );
});

test("while nothing is known, nothing fails, and no time counts", () => {
  const start = withSpec(running(), spec("web:2"), origin(at(20)));
  const silent = advance(advance(start, failing, at(49)), unknown, at(50));
  assert.equal(advance(silent, unknown, at(5_000)), silent, "silence is written once");
  const heard = advance(silent, waiting, at(10_000));
  assert.deepEqual(phases(heard), ["1 CURRENT", "2 STARTING"]);
  assert.deepEqual(phases(advance(silent, failing, at(10_000))), ["1 CURRENT", "2 STARTING"]);
  assert.deepEqual(phases(advance(heard, waiting, at(10_059))), ["1 CURRENT", "2 STARTING"]);
  assert.deepEqual(phases(advance(heard, waiting, at(10_060))), ["1 CURRENT", "2 FAILED"]);

  const ready9 = advance(advance(start, ready, at(21)), unknown, at(30));
  const ready10 = advance(ready9, ready, at(31));
  assert.deepEqual(phases(ready10), ["1 CURRENT", "2 STARTING"], "not ready without a gap");
});

test("another number of pods scales the releases in place", () => {
  const app = withSpec(running(), spec("web:1", { replicas: 5 }), origin(at(20)));
  assert.deepEqual(phases(app), ["1 CURRENT"]);
  assert.deepEqual(
    wantedDeployments(app).map(({ replicas }) => replicas),
    [5],
  );
});

test("a newer change supersedes a release that starts, and what runs already starts no release", () => {
  const second2 = withSpec(running(), spec("web:2"), origin(at(20)));
  const third = withSpec(second2, spec("web:3"), origin(at(21)));
  assert.deepEqual(phases(third), ["1 CURRENT", "2 SUPERSEDED", "3 STARTING"]);
  const back = withSpec(third, spec("web:1"), origin(at(22)));
  assert.deepEqual(phases(back), ["1 CURRENT", "2 SUPERSEDED", "3 SUPERSEDED"]);
});

test("the same spec again starts a release if the last one failed, and only then", () => {
  const start = withSpec(running(), spec("web:2"), origin(at(20)));
  assert.deepEqual(phases(withSpec(start, spec("web:2"), origin(at(21)))), ["1 CURRENT", "2 STARTING"]);
  const failed = advance(start, waiting, at(80));
  const again = withSpec(failed, spec("web:2"), origin(at(90)));
  assert.deepEqual(phases(again), ["1 CURRENT", "2 FAILED", "3 STARTING"]);
  const back = withSpec(failed, spec("web:1"), origin(at(90)));
  assert.deepEqual(phases(back), ["1 CURRENT", "2 FAILED"]);

  const first = advance(withSpec(undefined, spec("web:1"), origin(at(0))), waiting, at(60));
  assert.deepEqual(phases(withSpec(first, spec("web:1"), origin(at(70)))), ["1 FAILED", "2 STARTING"]);
});

test("of ended releases, the newest few are kept", () => {
  let app = running();
  for (let number = 2; number < 10; number++) {
    app = withSpec(app, spec(`web:${number}`), origin(number * at(100)));
  }
  assert.deepEqual(phases(app), ["1 CURRENT", "6 SUPERSEDED", "7 SUPERSEDED", "8 SUPERSEDED", "9 STARTING"]);
  assert.equal(app.nextNumber, 10);
});

test("a clock that is set back by a day delays nothing by a day", () => {
  const dayAfter = at(86_400);
  let app = withSpec(running(), spec("web:2"), origin(dayAfter));
  app = advance(app, ready, dayAfter);
  app = advance(app, ready, at(0));
  app = advance(app, ready, at(10));
  assert.deepEqual(phases(app), ["1 DRAINING", "2 CURRENT"]);
  app = advance(app, ready, at(30));
  assert.deepEqual(phases(app), ["1 RETIRED", "2 CURRENT"]);
});

test("back to an earlier release keeps the app's id, name and number of pods", () => {
  let app = withSpec(running(), spec("web:2", { replicas: 5 }), origin(at(20)));
  app = advance(advance(app, ready, at(21)), ready, at(31));
  const target = releaseBefore(app, 0);
  assert.equal(target?.number, 1);
  app = backTo(app, target ?? assert.fail(), { ...origin(at(40)), cause: "undo to 1" }, waiting());
  assert.deepEqual(phases(app), ["1 DRAINING", "2 CURRENT", "3 STARTING"]);
  const { deploymentId, k8sName, image, replicas } = app.spec?.template ?? assert.fail();
  assert.deepEqual([deploymentId, k8sName, image, replicas], ["app_web", "web", "web:1", 5]);
  assert.equal(app.releases[2]?.template?.deploymentId, "app_web-3");
  assert.equal(releaseBefore(app, 0)?.number, 2, "while one starts, the current one is before it");
});

test("a paused app starts nothing and fails nothing, but its replicas follow", () => {
  const paused = pausedOr(withSpec(running(), spec("web:2"), origin(at(20))), true, origin(at(21)));
  const late = advance(advance(paused, failing, at(22)), failing, at(5_000));
  assert.deepEqual(phases(late), ["1 CURRENT", "2 STARTING"]);
  const changed = withSpec(late, spec("web:3", { replicas: 4 }), origin(at(5_001)));
  assert.deepEqual(phases(changed), ["1 CURRENT", "2 STARTING"]);
  assert.deepEqual(
    wantedDeployments(changed).map(({ replicas }) => replicas),
    [4, 4],
  );
  const resumed = pausedOr(changed, false, origin(at(5_002)));
  assert.deepEqual(phases(resumed), ["1 CURRENT", "2 SUPERSEDED", "3 STARTING"]);
});

const leadsTo = (deploymentId: string, more: { isFinal?: boolean; isSettled?: boolean } = {}): Traffic => ({
  ...({ state: "at", deploymentId, isFinal: false, isSettled: true } as const),
  ...more,
});
const at1 = leadsTo("app_web-1");
const at2 = leadsTo("app_web-2");

/** Release 2 is current since second 31, and release 1 drains with 2 pods. */
function draining(replicas = 2): App {
  const app = withSpec(running(), spec("web:2"), origin(at(20)));
  const moved = advance(advance(app, ready, at(21)), ready, at(31));
  return withSpec(moved, spec("web:2", { replicas }), origin(at(32)));
}

const undone = (app: App, seconds: number, sight: Sight, number = 0) =>
  backTo(app, releaseBefore(app, number) ?? assert.fail("none before"), origin(at(seconds)), sight);

test("an undo moves back at once to a release that drains and is ready, and again with the next undo", () => {
  const back = undone(draining(), 40, ready());
  assert.deepEqual(phases(back), ["1 CURRENT", "2 DRAINING"]);
  assert.equal(back.spec?.template?.image, "web:1");
  assert.deepEqual(phases(withSpec(back, spec("web:1"), origin(at(41)))), phases(back), "it runs already");
  assert.deepEqual(phases(undone(back, 41, ready())), ["1 DRAINING", "2 CURRENT"]);
  const later = advance(back, ready, at(60));
  assert.deepEqual(phases(later), ["1 CURRENT", "2 RETIRED"]);
  assert.deepEqual(phases(undone(later, 61, ready())), ["1 CURRENT", "2 RETIRED", "3 STARTING"]);
});

test("an undo never moves to pods that are not ready, gone, unknown or too few", () => {
  for (const sight of [waiting(), failing(), unknown()]) {
    assert.deepEqual(phases(undone(draining(), 40, sight)), ["1 DRAINING", "2 CURRENT", "3 STARTING"]);
  }
  assert.deepEqual(phases(undone(draining(3), 40, ready())), ["1 DRAINING", "2 CURRENT", "3 STARTING"]);
  const fewer = undone(draining(1), 40, ready());
  assert.deepEqual(
    wantedDeployments(fewer).map(({ deploymentId, replicas }) => `${deploymentId} ${replicas}`),
    ["app_web-1 1", "app_web-2 1"],
  );
  const gone = advance(draining(), ready, at(60));
  assert.deepEqual(phases(undone(gone, 61, ready())), ["1 RETIRED", "2 CURRENT", "3 STARTING"]);
});

test("an undo to a release that drains ends the one that starts", () => {
  const third = withSpec(draining(), spec("web:3"), origin(at(32)));
  assert.deepEqual(phases(undone(third, 33, ready())), ["1 DRAINING", "2 CURRENT", "3 SUPERSEDED"]);
  assert.deepEqual(phases(undone(third, 33, ready(), 1)), ["1 CURRENT", "2 DRAINING", "3 SUPERSEDED"]);
});

test("the release before is the one that was current before, also after the clock was set back", () => {
  const started = advance(withSpec(running(), spec("web:2"), origin(at(-500))), ready, at(-500));
  const second2 = advance(started, ready, at(-490));
  assert.deepEqual(phases(second2), ["1 DRAINING", "2 CURRENT"]);
  const started3 = advance(withSpec(second2, spec("web:3"), origin(at(-480))), ready, at(-480));
  const third = advance(started3, ready, at(-465));
  assert.deepEqual(phases(third), ["1 RETIRED", "2 DRAINING", "3 CURRENT"]);
  assert.equal(releaseBefore(third, 0)?.number, 2);
});

test("after an undo, an old report of where the route leads ends no release", () => {
  const exposed = (app: App) => withSpec(app, spec("web:2", {}, Expose.CLUSTER), origin(at(32)));
  const back = undone(exposed(draining()), 33, ready());
  assert.deepEqual(phases(back), ["1 CURRENT", "2 DRAINING"]);
  // The agent said that the Service leads to release 1 before it moved to release 2, which it has not reported yet.
  const old = leadsTo("app_web-1", { isSettled: false });
  const later = advance(advance(back, ready, at(34), old), ready, at(500), old);
  assert.deepEqual(phases(later), ["1 CURRENT", "2 DRAINING"]);
  const seen = advance(later, ready, at(501), at1);
  // That a newer version of the route is being applied says nothing else.
  assert.deepEqual(phases(advance(seen, ready, at(521), old)), ["1 CURRENT", "2 RETIRED"]);
});

test("a release that drains again waits for its traffic again", () => {
  const app = withSpec(draining(), spec("web:2", {}, Expose.CLUSTER), origin(at(32)));
  const back = undone(advance(app, ready, at(33), at2), 34, ready());
  const forth = undone(back, 60, ready());
  assert.deepEqual(phases(forth), ["1 DRAINING", "2 CURRENT"]);
  assert.deepEqual(phases(advance(forth, ready, at(500), { state: "unknown" })), phases(forth));
});

test("the route leads to the current release, and admits those that traffic may move to", () => {
  const exposed = (image: string, port: number) => spec(image, { port }, Expose.CLUSTER);
  const shown = (app: App) => {
    const { deploymentId, backends } = wantedRoute(app) ?? assert.fail("no route");
    return [deploymentId, ...backends.map((each) => `${each.deploymentId}:${each.port}`)];
  };
  let app = withSpec(undefined, exposed("web:1", 0), origin(at(0)));
  assert.deepEqual(shown(app), ["", "app_web-1:8080"]);
  app = advance(advance(app, ready, at(0)), ready, at(10));
  assert.deepEqual(shown(app), ["app_web-1", "app_web-1:8080"]);
  app = advance(withSpec(app, exposed("web:2", 9000), origin(at(20))), ready, at(20));
  assert.deepEqual(shown(app), ["app_web-1", "app_web-1:8080", "app_web-2:9000"]);
  app = advance(app, ready, at(30), at1);
  assert.deepEqual(shown(app), ["app_web-2", "app_web-1:8080", "app_web-2:9000"]);
  app = advance(advance(app, ready, at(31), at2), ready, at(51), at2);
  assert.deepEqual(shown(app), ["app_web-2", "app_web-2:9000"]);
  assert.equal(wantedRoute(withSpec(app, spec("web:2"), origin(at(60)))), undefined);
});

test("a release drains from when the route was seen to lead to the current one, for 5 seconds at least", () => {
  const started = advance(withSpec(running(), spec("web:2"), origin(at(20))), ready, at(20));
  const moved = advance(started, ready, at(30), at1);
  assert.deepEqual(phases(moved), ["1 DRAINING", "2 CURRENT"]);
  for (const traffic of [at1, { state: "unknown" } as const]) {
    assert.deepEqual(phases(advance(moved, ready, at(5_000), traffic)), ["1 DRAINING", "2 CURRENT"]);
  }
  const seen = advance(moved, ready, at(100), at2);
  assert.deepEqual(phases(advance(seen, ready, at(119), at2)), ["1 DRAINING", "2 CURRENT"]);
  assert.deepEqual(phases(advance(seen, ready, at(120), at2)), ["1 RETIRED", "2 CURRENT"]);
  // It counts again from the beginning if the agent reports otherwise.
  const back = advance(advance(seen, ready, at(110), at1), ready, at(112), at2);
  assert.deepEqual(phases(advance(back, ready, at(131), at2)), ["1 DRAINING", "2 CURRENT"]);
  const short = advance(seen, ready, at(100), at2);
  if (short.spec?.policy) short.spec.policy.drainSeconds = 0;
  assert.deepEqual(phases(advance(short, ready, at(104), at2)), ["1 DRAINING", "2 CURRENT"]);
  assert.deepEqual(phases(advance(short, ready, at(105), at2)), ["1 RETIRED", "2 CURRENT"]);
});

test("a route that cannot be applied keeps only the release that its Service leads to", () => {
  const started = advance(withSpec(running(), spec("web:2"), origin(at(20))), ready, at(20));
  const moved = advance(started, ready, at(30), at1);
  const stuck = (deploymentId: string) => leadsTo(deploymentId, { isFinal: true, isSettled: false });
  const own = advance(moved, ready, at(40), stuck("app_web-1"));
  assert.deepEqual(phases(advance(own, ready, at(5_000), stuck("app_web-1"))), ["1 DRAINING", "2 CURRENT"]);
  const nowhere = advance(moved, ready, at(40), stuck(""));
  assert.deepEqual(phases(advance(nowhere, ready, at(60), stuck(""))), ["1 RETIRED", "2 CURRENT"]);
});
