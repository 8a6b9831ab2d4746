import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { ApplyRoute_Expose as Expose } from "../../gen/ctrl/v1/route_pb.ts";
import {
  type App,
  type AppSpec,
  AppSpecSchema,
  Release_Phase as Phase,
} from "../../gen/krane/admin/v1/app_pb.ts";
import { MemoryStore } from "../memory-store.ts";
import {
  advance,
  backTo,
  isActive,
  pausedOr,
  releaseBefore,
  restarted,
  type Sight,
  type Traffic,
  wantedDeployments,
  wantedRoute,
  withSpec,
} from "./releases.ts";

const region = "local.test";
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
  app = backTo(app, target ?? assert.fail(), { ...origin(at(40)), cause: "undo to 1" });
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

const at1: Traffic = { state: "at", deploymentId: "app_web-1", isFinal: false };
const at2: Traffic = { state: "at", deploymentId: "app_web-2", isFinal: false };

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
  const stuck = (deploymentId: string) => ({ state: "at", deploymentId, isFinal: true }) as const;
  const own = advance(moved, ready, at(40), stuck("app_web-1"));
  assert.deepEqual(phases(advance(own, ready, at(5_000), stuck("app_web-1"))), ["1 DRAINING", "2 CURRENT"]);
  const nowhere = advance(moved, ready, at(40), stuck(""));
  assert.deepEqual(phases(advance(nowhere, ready, at(60), stuck(""))), ["1 RETIRED", "2 CURRENT"]);
});

// Random changes and reports, handled by two servers whose clocks differ, of which either may stop before any step,
// repeat one, or decide on what it read before the other one wrote.

type Move =
  | { readonly kind: "apply"; readonly image: number; readonly replicas: number }
  | { readonly kind: "order"; readonly order: "restart" | "undo" | "pause" | "resume" }
  | { readonly kind: "report"; readonly number: number; readonly state: Sight["state"] }
  /** The agent moves the Service to where the route leads, reports where it is, or is too old for either. */
  | { readonly kind: "route"; readonly act: "move" | "report" | "silence" }
  | { readonly kind: "pass"; readonly seconds: number }
  | { readonly kind: "step"; readonly server: 0 | 1; readonly otherBetween: boolean };

const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ kind: fc.constant("apply"), image: fc.nat(3), replicas: fc.nat(2) } as const),
  fc.record({
    kind: fc.constant("order"),
    order: fc.constantFrom("restart", "undo", "pause", "resume"),
  } as const),
  fc.record({
    kind: fc.constant("report"),
    number: fc.integer({ min: 1, max: 6 }),
    state: fc.constantFrom("ready", "ready", "waiting", "failing", "refused", "unknown"),
  } as const),
  fc.record({ kind: fc.constant("route"), act: fc.constantFrom("move", "report", "silence") } as const),
  fc.record({ kind: fc.constant("pass"), seconds: fc.integer({ min: -5, max: 40 }) } as const),
  fc.record({
    kind: fc.constant("step"),
    server: fc.constantFrom(0, 1),
    otherBetween: fc.boolean(),
  } as const),
);

const skewsMs = [0, 3_000] as const;

class World {
  readonly store = new MemoryStore();
  private readonly states = new Map<number, Sight["state"]>();
  private nowMs = at(0);
  private readonly expose: Expose;
  /** Where the Service leads, and since when the agent says so. */
  private service = "";
  private traffic: Traffic = { state: "unknown" };

  constructor(expose: Expose) {
    this.expose = expose;
  }

  async play(moves: readonly Move[]): Promise<void> {
    await this.store.registerRegion(region);
    for (const each of moves) await this.make(each);
    // The agent reports again and nothing new happens: everything ends.
    await this.make({ kind: "order", order: "resume" });
    for (const [number, state] of this.states) if (state === "unknown") this.states.set(number, "waiting");
    for (let round = 0; round < 20; round++) {
      this.nowMs += 30 * second;
      await this.moveRoute("move");
      await this.moveRoute("report");
      await this.step(0);
      await this.step(1);
    }
    const { app } = await this.store.app(region, "app_web");
    assert.ok(app === undefined || !isActive(app), app && phases(app).join());
  }

  private async make(each: Move): Promise<void> {
    if (each.kind === "pass") this.nowMs += each.seconds * second;
    if (each.kind === "report") this.states.set(each.number, each.state);
    if (each.kind === "route") await this.moveRoute(each.act);
    if (each.kind === "step") await this.step(each.server, each.otherBetween);
    if (each.kind === "order") await this.change(({ app }) => app && this.ordered(app, each.order));
    if (each.kind === "apply") {
      const wanted = spec(`web:${each.image}`, { replicas: each.replicas }, this.expose);
      await this.change(({ app }) => withSpec(app, wanted, origin(this.nowMs)));
    }
  }

  private async moveRoute(act: "move" | "report" | "silence"): Promise<void> {
    const [route] = await this.store.rows(region, "route");
    if (act === "move") this.service = route?.spec.deploymentId ?? "";
    if (act === "report") this.traffic = { state: "at", deploymentId: this.service, isFinal: false };
    if (act === "silence") this.traffic = { state: "unknown" };
  }

  private ordered(app: App, order: Extract<Move, { kind: "order" }>["order"]): App {
    const of = origin(this.nowMs);
    if (order === "pause" || order === "resume") return pausedOr(app, order === "pause", of);
    if (app.paused) return app;
    if (order === "restart") return restarted(app, of);
    const target = releaseBefore(app, 0);
    return target === undefined ? app : backTo(app, target, of);
  }

  private async step(server: 0 | 1, otherBetween = false): Promise<void> {
    await this.store.app(region, "app_web");
    if (otherBetween) await this.step(server === 0 ? 1 : 0);
    const nowMs = this.nowMs + skewsMs[server];
    await this.change(({ app }) => {
      const traffic: Traffic = this.expose === Expose.UNSPECIFIED ? { state: "none" } : this.traffic;
      return app && advance(app, ({ number }) => this.sightOf(number), nowMs, traffic);
    });
  }

  private sightOf(number: number): Sight {
    const state = this.states.get(number) ?? "waiting";
    return state === "ready" || state === "unknown" ? { state } : { state, reason: state };
  }

  private async change(decide: Parameters<MemoryStore["changeApp"]>[2]): Promise<void> {
    const author = { by: "test", atMs: this.nowMs };
    const { before, after } = await this.store.changeApp(region, "app_web", decide, author);
    if (after === undefined) return;
    const of = (app: App | undefined, phase: Phase) =>
      (app?.releases ?? []).filter((release) => release.phase === phase).map(({ number }) => number);
    const [current] = of(after, Phase.CURRENT);
    assert.ok(of(after, Phase.CURRENT).length <= 1, "never two current releases");
    assert.ok(of(after, Phase.STARTING).length <= 1);
    const [currentBefore] = of(before, Phase.CURRENT);
    if (current !== currentBefore) {
      assert.ok(current !== undefined, "an app does not lose its current release");
      assert.equal(this.states.get(current), "ready", "only what is ready becomes current");
    }
    if (before?.paused && after.paused) {
      assert.equal(current, currentBefore, "a paused app keeps its current release");
      assert.ok(after.nextNumber === before.nextNumber, "a paused app starts none");
    }
    const failedBefore = new Set(of(before, Phase.FAILED));
    for (const number of of(after, Phase.FAILED)) {
      if (failedBefore.has(number)) continue;
      assert.notEqual(this.states.get(number), "unknown", "what is unknown has not failed");
    }
    const rows = await this.store.rows(region, "deployment");
    assert.deepEqual(
      rows
        .filter(({ desired }) => desired === "running")
        .map(({ id }) => id)
        .sort(),
      wantedDeployments(after)
        .map(({ deploymentId }) => deploymentId)
        .sort(),
      "what runs is what the releases say",
    );
    if (this.expose === Expose.UNSPECIFIED) return;
    const [route] = await this.store.rows(region, "route");
    const wanted = after.releases.find(({ number }) => number === current)?.template?.deploymentId ?? "";
    assert.equal(route?.spec.deploymentId, wanted, "the route leads to the current release");
    const led = after.releases.find(({ template: own }) => own?.deploymentId === this.service);
    assert.notEqual(led?.phase, Phase.RETIRED, "a release that its Service leads to does not end");
  }
}

test("whatever is reported, and with two servers: one current release, only a ready one, and always an end", async () => {
  const numRuns = process.env["KRANE_TEST_LONG"] ? 20_000 : 300;
  await fc.assert(
    fc.asyncProperty(
      fc.array(move, { maxLength: 60 }),
      fc.constantFrom(Expose.UNSPECIFIED, Expose.CLUSTER),
      (moves, expose) => new World(expose).play(moves),
    ),
    { numRuns },
  );
});
