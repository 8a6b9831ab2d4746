// Random changes, reports and agents, handled by two servers whose clocks differ, of which either may stop before any step,
// repeat one, or decide on what it read before the other one wrote.
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
  type Release,
} from "../../gen/krane/admin/v1/app_pb.ts";
import { MemoryStore } from "../memory-store.ts";
import {
  advance,
  backTo,
  currentRelease,
  hasEnded,
  isActive,
  pausedOr,
  releaseBefore,
  restarted,
  type Sight,
  startingRelease,
  type Traffic,
  wantedDeployments,
  withSpec,
} from "./releases.ts";

const region = "local.test";
const appId = "app_web";
const second = 1_000;
const policy = { readySeconds: 10, deadlineSeconds: 60, drainSeconds: 20, history: 3 };
const specOf = (image: number, replicas: number, expose: Expose): AppSpec => {
  const names = { deploymentId: appId, k8sName: "web", k8sNamespace: "acme", environmentId: "env_1" };
  return create(AppSpecSchema, { policy, template: { ...names, image: `web:${image}`, replicas }, expose });
};

const agentActs = ["receive", "apply", "receive and apply", "refuse", "report", "settle", "silence"] as const;

type Move =
  | { readonly kind: "apply"; readonly image: number; readonly replicas: number }
  | { readonly kind: "order"; readonly order: "restart" | "undo" | "pause" | "resume" }
  | { readonly kind: "undo"; readonly number: number }
  | { readonly kind: "report"; readonly number: number; readonly state: Sight["state"] }
  /** The newest release becomes ready, and current if nothing keeps it from that. */
  | { readonly kind: "succeed"; readonly image: number }
  /** What the agent does about the route. */
  | { readonly kind: "agent"; readonly act: (typeof agentActs)[number] }
  | { readonly kind: "pass"; readonly seconds: number }
  | { readonly kind: "step"; readonly server: 0 | 1; readonly otherBetween: boolean };

const number = fc.integer({ min: 1, max: 6 });
const move: fc.Arbitrary<Move> = fc.oneof(
  fc.record({ kind: fc.constant("apply"), image: fc.nat(3), replicas: fc.nat(2) } as const),
  fc.record({
    kind: fc.constant("order"),
    order: fc.constantFrom("restart", "undo", "undo", "pause", "resume"),
  } as const),
  fc.record({ kind: fc.constant("undo"), number } as const),
  fc.record({
    kind: fc.constant("report"),
    number,
    state: fc.constantFrom("ready", "ready", "waiting", "failing", "refused", "unknown"),
  } as const),
  fc.record({ kind: fc.constant("succeed"), image: fc.nat(3) } as const),
  fc.record({ kind: fc.constant("agent"), act: fc.constantFrom(...agentActs) } as const),
  fc.record({ kind: fc.constant("agent"), act: fc.constantFrom(...agentActs) } as const),
  fc.record({ kind: fc.constant("pass"), seconds: fc.integer({ min: -5, max: 40 }) } as const),
  fc.record({
    kind: fc.constant("step"),
    server: fc.constantFrom(0, 1),
    otherBetween: fc.boolean(),
  } as const),
);

const skewsMs = [0, 3_000] as const;
const words: ReadonlyMap<Phase, string> = new Map(
  Object.entries(Phase).map(([word, phase]) => [phase, word]),
);

/** What an agent does with the route of the app, one part after the other: the control plane hears of each separately. */
class RouteAgent {
  /** Where the Service leads. */
  service = "";
  private known = { version: 0n, deploymentId: "" };
  private done = 0n;
  private refused = 0n;
  private reported: { readonly deploymentId: string; readonly settled: bigint } | undefined;

  act(act: (typeof agentActs)[number], newest: { readonly version: bigint; readonly deploymentId: string }) {
    const settled = this.reported?.settled ?? 0n;
    const deploymentId = this.reported?.deploymentId ?? "";
    if (act === "receive" || act === "receive and apply") this.known = newest;
    if (act === "apply" || act === "receive and apply") {
      this.service = this.known.deploymentId;
      this.done = this.known.version;
      this.refused = 0n;
    }
    // Where the Service is was reported before.
    if (act === "refuse" && this.done < this.known.version) {
      this.refused = this.known.version;
      this.reported = { deploymentId: this.service, settled };
    }
    if (act === "report") this.reported = { deploymentId: this.service, settled };
    if (act === "settle") this.reported = { deploymentId, settled: this.done };
    if (act === "silence") this.reported = undefined;
  }

  trafficAt(newestVersion: bigint): Traffic {
    if (this.reported === undefined) return { state: "unknown" };
    const { deploymentId, settled } = this.reported;
    const isFinal = newestVersion > 0n && this.refused === newestVersion;
    return { state: "at", deploymentId, isFinal, isSettled: settled >= newestVersion };
  }
}

/** What happened in all runs, so that the test shows that it has tried the interesting cases. */
type Seen = Map<string, number>;

class World {
  readonly store = new MemoryStore();
  private readonly states = new Map<number, Sight["state"]>();
  private readonly agent = new RouteAgent();
  private readonly expose: Expose;
  private readonly seen: Seen;
  private nowMs = 1_700_000_000_000;

  constructor(expose: Expose, seen: Seen) {
    this.expose = expose;
    this.seen = seen;
  }

  async play(moves: readonly Move[]): Promise<void> {
    await this.store.registerRegion(region);
    for (const each of moves) await this.make(each);
    // The agent reports again and nothing new happens: everything ends.
    await this.make({ kind: "order", order: "resume" });
    for (const [release, state] of this.states) if (state === "unknown") this.states.set(release, "waiting");
    for (let round = 0; round < 20; round++) {
      this.nowMs += 30 * second;
      await this.catchUp();
      await this.step(0);
      await this.step(1);
    }
    const { app } = await this.store.app(region, appId);
    assert.ok(app === undefined || !isActive(app), "every release ends");
    assert.ok(app === undefined || startingRelease(app) === undefined);
    if (app !== undefined && this.expose !== Expose.UNSPECIFIED)
      assert.equal(this.agent.service, currentRelease(app)?.template?.deploymentId ?? "");
  }

  private async make(each: Move): Promise<void> {
    switch (each.kind) {
      case "pass":
        this.nowMs += each.seconds * second;
        break;
      case "report":
        this.states.set(each.number, each.state);
        break;
      case "agent":
        await this.actOnRoute(each.act);
        break;
      case "step":
        await this.step(each.server, each.otherBetween);
        break;
      case "order":
        await this.change(({ app }) => app && this.ordered(app, each.order));
        break;
      case "undo":
        await this.change(({ app }) => app && this.undone(app, each.number));
        break;
      case "apply":
        await this.apply(each.image, each.replicas);
        break;
      case "succeed":
        await this.apply(each.image, 1);
        await this.succeed();
    }
  }

  private async succeed(): Promise<void> {
    const { app } = await this.store.app(region, appId);
    const starting = app && startingRelease(app);
    if (starting !== undefined) this.states.set(starting.number, "ready");
    await this.step(0);
    this.nowMs += policy.readySeconds * second;
    await this.step(0);
  }

  private apply(image: number, replicas: number): Promise<void> {
    const wanted = specOf(image, replicas, this.expose);
    return this.change(({ app }) => withSpec(app, wanted, this.origin()));
  }

  private origin() {
    return { by: "ann", atMs: this.nowMs, cause: "applied", secrets: new Uint8Array() };
  }

  private async newestRoute() {
    const [route] = await this.store.rows(region, "route");
    return { version: route?.version ?? 0n, deploymentId: route?.spec.deploymentId ?? "" };
  }

  private async actOnRoute(act: (typeof agentActs)[number]): Promise<void> {
    this.agent.act(act, await this.newestRoute());
    const { app } = await this.store.app(region, appId);
    if (app !== undefined) this.checkService(app);
  }

  private async catchUp(): Promise<void> {
    for (const act of ["receive and apply", "report", "settle"] as const) await this.actOnRoute(act);
  }

  private ordered(app: App, order: Extract<Move, { kind: "order" }>["order"]): App {
    if (order === "pause" || order === "resume") return pausedOr(app, order === "pause", this.origin());
    if (app.paused) return app;
    return order === "restart" ? restarted(app, this.origin()) : this.undone(app, 0);
  }

  private undone(app: App, to: number): App {
    const target = releaseBefore(app, to);
    if (app.paused || target === undefined) return app;
    return backTo(app, target, this.origin(), this.sightOf(target));
  }

  private async step(server: 0 | 1, otherBetween = false): Promise<void> {
    await this.store.app(region, appId);
    if (otherBetween) await this.step(server === 0 ? 1 : 0);
    const nowMs = this.nowMs + skewsMs[server];
    const { version } = await this.newestRoute();
    const hasRoute = this.expose !== Expose.UNSPECIFIED;
    const traffic: Traffic = hasRoute ? this.agent.trafficAt(version) : { state: "none" };
    await this.change(({ app }) => app && advance(app, (release) => this.sightOf(release), nowMs, traffic));
  }

  private sightOf(release: Release): Sight {
    const state = this.states.get(release.number) ?? "waiting";
    return state === "ready" || state === "unknown" ? { state } : { state, reason: state };
  }

  private async change(decide: Parameters<MemoryStore["changeApp"]>[2]): Promise<void> {
    const author = { by: "test", atMs: this.nowMs };
    const { before, after } = await this.store.changeApp(region, appId, decide, author);
    if (after === undefined) return;
    this.checkPhases(before, after);
    if (before?.paused && after.paused) {
      assert.equal(currentRelease(before)?.number, currentRelease(after)?.number, "paused: nothing moves");
      assert.equal(after.nextNumber, before.nextNumber, "paused: nothing starts");
    }
    const rows = await this.store.rows(region, "deployment");
    assert.deepEqual(
      rows.flatMap(({ id, desired }) => (desired === "running" ? [id] : [])).sort(),
      wantedDeployments(after)
        .map(({ deploymentId }) => deploymentId)
        .sort(),
      "what runs is what the releases say",
    );
    if (this.expose === Expose.UNSPECIFIED) return;
    const current = currentRelease(after)?.template?.deploymentId ?? "";
    assert.equal((await this.newestRoute()).deploymentId, current, "the route leads to the current release");
    this.checkService(after);
  }

  private checkPhases(before: App | undefined, after: App): void {
    const count = (phase: Phase) => after.releases.filter((release) => release.phase === phase).length;
    assert.ok(count(Phase.CURRENT) <= 1, "never two current releases");
    assert.ok(count(Phase.STARTING) <= 1, "never two that start");
    const was = new Map(before?.releases.map((release) => [release.number, release]));
    const current = currentRelease(after);
    if (before !== undefined && currentRelease(before) !== undefined)
      assert.ok(current !== undefined, "an app does not lose its current release");
    if (current !== undefined && was.get(current.number)?.phase !== Phase.CURRENT)
      this.checkMove(was.get(current.number), current);
    for (const release of after.releases) {
      const old = was.get(release.number);
      if (old?.phase === release.phase) continue;
      this.note(words.get(release.phase) ?? "");
      assert.ok(old === undefined || !hasEnded(old), "what has ended does not come back");
      if (release.phase !== Phase.FAILED) continue;
      assert.equal(old?.phase, Phase.STARTING, "only what starts can fail");
      assert.notEqual(this.sightOf(release).state, "unknown", "what is unknown has not failed");
    }
  }

  /** Traffic moves to it. */
  private checkMove(was: Release | undefined, current: Release): void {
    assert.equal(this.sightOf(current).state, "ready", "only what is ready becomes current");
    if (was?.phase !== Phase.DRAINING) return;
    this.note("moved back");
    const { replicas = 0 } = current.template ?? {};
    assert.ok((was.template?.replicas ?? 0) >= replicas, "what it moves back to has enough pods");
  }

  private checkService({ releases }: App): void {
    const led = releases.find(({ template }) => template?.deploymentId === this.agent.service);
    if (this.agent.service !== "")
      assert.ok(led !== undefined && !hasEnded(led), "a release that its Service leads to does not end");
    if (led?.phase === Phase.DRAINING) this.note("its Service still leads to one that drains");
  }

  private note(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }
}

test("whatever is reported, and with two servers: one current release, only a ready one, and always an end", async (t) => {
  const numRuns = process.env["KRANE_TEST_LONG"] ? 20_000 : 300;
  const seen: Seen = new Map();
  await fc.assert(
    fc.asyncProperty(
      fc.array(move, { maxLength: 60, size: "max" }),
      fc.constantFrom(Expose.UNSPECIFIED, Expose.CLUSTER),
      (moves, expose) => new World(expose, seen).play(moves),
    ),
    { numRuns },
  );
  t.diagnostic([...seen].map(([what, count]) => `${what}: ${count}`).join(", "));
});
