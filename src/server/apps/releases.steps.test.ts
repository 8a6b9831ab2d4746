// The part of the requests by hostname that a release gets before it is current.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ApplyRoute_Expose as Expose } from "../../gen/ctrl/v1/route_pb.ts";
import { type App, AppSpecSchema, Release_Phase as Phase } from "../../gen/krane/admin/v1/app_pb.ts";
import { advance, hasEnded, pausedOr, type Sight, type Traffic, wantedRoute, withSpec } from "./releases.ts";

const at = (seconds: number) => 1_700_000_000_000 + seconds * 1_000;
const policy = { readySeconds: 10, deadlineSeconds: 60, drainSeconds: 20, steps: [10, 50], stepSeconds: 30 };
const template = { deploymentId: "app_web", k8sName: "web", k8sNamespace: "acme", replicas: 1 };
const spec = (image: string, hostnames = ["shop.example.com"]) =>
  create(AppSpecSchema, { policy, template: { ...template, image }, expose: Expose.GATEWAY, hostnames });
const origin = (atMs: number) => ({ by: "ann", atMs, cause: "applied", secrets: new Uint8Array() });

const ready = (): Sight => ({ state: "ready" });
const waiting = (): Sight => ({ state: "waiting", reason: "0 of 1 pods ready" });
const unknown = (): Sight => ({ state: "unknown" });

/** What the route wants: where its Service leads, and the parts of others. */
function traffic(app: App): string {
  const route = wantedRoute(app);
  const parts = (route?.backends ?? []).flatMap(({ deploymentId, percent }) =>
    percent === 0 ? [] : [`${percent}% ${deploymentId}`],
  );
  return [route?.deploymentId ?? "", ...parts].join(", ");
}

function phaseOf(app: App, number: number): Phase | undefined {
  return app.releases.find((each) => each.number === number)?.phase;
}

/** The second release starts at second 20, ready from the beginning. */
function starting(hostnames?: string[]): App {
  const first = advance(withSpec(undefined, spec("web:1", hostnames), origin(at(0))), ready, at(0));
  const current = advance(first, ready, at(10));
  return advance(withSpec(current, spec("web:2", hostnames), origin(at(20))), ready, at(20));
}

test("a ready release gets one part of the requests after the other, and then is current", () => {
  let app = starting();
  assert.equal(traffic(app), "app_web-1");
  app = advance(app, ready, at(30));
  assert.equal(traffic(app), "app_web-1, 10% app_web-2");
  assert.equal(advance(app, ready, at(59)), app);
  app = advance(app, ready, at(60));
  assert.equal(traffic(app), "app_web-1, 50% app_web-2");
  app = advance(app, ready, at(90));
  assert.equal(traffic(app), "app_web-2");
  assert.deepEqual([phaseOf(app, 1), phaseOf(app, 2)], [Phase.DRAINING, Phase.CURRENT]);
});

test("the first release, and one without hostnames, move at once", () => {
  assert.equal(traffic(advance(starting([]), ready, at(30))), "app_web-2");
});

test("a release that is not ready any more gets nothing at once, and begins again with the first step", () => {
  let app = advance(starting(), ready, at(30));
  app = advance(app, ready, at(60));
  app = advance(app, waiting, at(61));
  assert.equal(traffic(app), "app_web-1");
  assert.equal(phaseOf(advance(app, waiting, at(100)), 2), Phase.STARTING, "its deadline starts again");
  app = advance(app, ready, at(100));
  assert.equal(traffic(advance(app, ready, at(109))), "app_web-1");
  assert.equal(traffic(advance(app, ready, at(110))), "app_web-1, 10% app_web-2");
  assert.equal(phaseOf(advance(app, waiting, at(121)), 2), Phase.FAILED);
});

test("while the app is paused, or the agent is silent, a release keeps its part and no time counts", () => {
  const part = "app_web-1, 10% app_web-2";
  let app = advance(starting(), ready, at(30));
  app = advance(app, unknown, at(31));
  assert.equal(traffic(app), part);
  app = advance(app, ready, at(500));
  app = advance(app, ready, at(510));
  assert.equal(traffic(app), part);
  assert.equal(traffic(advance(app, ready, at(540))), "app_web-1, 50% app_web-2");
  const paused = pausedOr(app, true, origin(at(511)));
  const later = advance(advance(paused, ready, at(512)), ready, at(5_000));
  assert.equal(traffic(later), part);
  assert.equal(traffic(advance(later, waiting, at(5_001))), "app_web-1", "it is not ready");
});

test("a release that gets requests and is superseded runs until the agent has reported that it gets none", () => {
  const part = advance(starting(), ready, at(30));
  let app = withSpec(part, spec("web:1"), origin(at(40)));
  assert.equal(traffic(app), "app_web-1");
  const seen = (nextDeploymentId: string): Traffic => ({
    ...{ state: "at", deploymentId: "app_web-1", isFinal: false, isSettled: true },
    nextDeploymentId,
  });
  app = advance(app, ready, at(100), seen("app_web-2"));
  assert.equal(phaseOf(app, 2), Phase.DRAINING);
  app = advance(app, ready, at(200), seen(""));
  assert.equal(phaseOf(advance(app, ready, at(219), seen("")), 2), Phase.DRAINING);
  assert.equal(phaseOf(advance(app, ready, at(220), seen("")), 2), Phase.SUPERSEDED);
});

test("whatever is seen: at most one other release gets a part, of 1 to 99, and none that is seen unready; a ready one becomes current", () => {
  const sight = fc.constantFrom(ready, ready, ready, waiting, unknown);
  const step = fc.record({
    sight,
    seconds: fc.integer({ min: -5, max: 40 }),
    pause: fc.constantFrom(true, false, false),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let [app, now] = [starting(), 20];
      for (const { sight: see, seconds, pause } of steps) {
        now += seconds;
        app = advance(pausedOr(app, pause, origin(at(now))), see, at(now));
        const parts = (wantedRoute(app)?.backends ?? []).filter(({ percent }) => percent > 0);
        assert.ok(parts.length <= 1);
        for (const { deploymentId, percent } of parts) {
          assert.ok(percent >= 1 && percent <= 99);
          assert.notEqual(deploymentId, wantedRoute(app)?.deploymentId);
          assert.notEqual(see().state, "waiting");
        }
      }
      for (let pass = 0; pass < 8; pass++) {
        now += 200;
        app = advance(pausedOr(app, false, origin(at(now))), ready, at(now));
      }
      // If the second release has failed, resuming the app starts what it ran once more.
      const [current] = app.releases.filter(({ phase }) => phase === Phase.CURRENT);
      assert.equal(traffic(app), current?.template?.deploymentId);
      assert.equal(current, app.releases.filter(({ phase }) => phase !== Phase.FAILED).at(-1));
      assert.deepEqual(
        app.releases.filter((each) => each !== current && !hasEnded(each)),
        [],
      );
    }),
  );
});
