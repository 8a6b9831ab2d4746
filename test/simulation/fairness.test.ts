// One slow or failing namespace holds its share of the workers, and no more: the others do not wait for it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sleep } from "../../src/concurrency/clock.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import { defaultOptions, SimulatedRegion } from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();
const workers = 64;
const webhookMs = 10_000;

type Webhook = "slow" | "times out" | "fails at once";

class World {
  readonly region: SimulatedRegion;
  /** How many applies are inside a webhook now, and the most that ever were. */
  held = 0;
  heldMax = 0;
  attempts = 0;
  webhook: Webhook | undefined;
  isHookedName: (name: string) => boolean = () => false;
  private readonly isHooked: (namespace: string) => boolean;

  private constructor(region: SimulatedRegion, webhook: Webhook, isHooked: (namespace: string) => boolean) {
    this.region = region;
    this.webhook = webhook;
    this.isHooked = isHooked;
  }

  static async start(webhook: Webhook, isHooked: (namespace: string) => boolean): Promise<World> {
    const world = new World(await SimulatedRegion.create(), webhook, isHooked);
    const { region } = world;
    const options = { ...defaultOptions, workers, resyncMs: 0, replayMs: 0 };
    const agent = region.createAgentOf("deployments", (deps) =>
      createDeploymentController(options, { ...deps, api: world.hooked(deps.api) }),
    );
    await region.resolved(agent.controller.start());
    return world;
  }

  /** Orders deployments with consecutive numbers in a namespace. */
  async order(namespace: string, from: number, count: number): Promise<void> {
    for (let index = from; index < from + count; index++)
      await this.region.setDeployment(index, { k8sNamespace: namespace, replicas: 1 });
  }

  async countIn(namespace: string): Promise<number> {
    return (await this.region.replicaSets()).filter(({ metadata }) => metadata?.namespace === namespace)
      .length;
  }

  private hooked(api: KubeApi): KubeApi {
    const { clock } = this.region;
    return {
      ...api,
      apply: async (kind, manifest, options, signal) => {
        const { namespace = "", name = "" } = manifest.metadata ?? {};
        const isHooked = this.isHooked(namespace) || this.isHookedName(name);
        if (kind.kind !== "ReplicaSet" || !isHooked || this.webhook === undefined)
          return api.apply(kind, manifest, options, signal);
        this.attempts += 1;
        const fails = this.webhook !== "slow";
        if (this.webhook !== "fails at once") {
          this.held += 1;
          this.heldMax = Math.max(this.heldMax, this.held);
          await sleep(clock, webhookMs, signal).finally(() => {
            this.held -= 1;
          });
        }
        if (!fails) return api.apply(kind, manifest, options, signal);
        throw new KubeApiError("refused", "patch replicasets: 500: failed calling webhook", { status: 500 });
      },
    };
  }
}

describe("500 objects of a namespace behind a webhook", () => {
  for (const webhook of ["slow", "times out"] as const)
    test(`that ${webhook === "slow" ? "takes ten seconds" : "times out"}: other namespaces do not wait`, async () => {
      const world = await World.start(webhook, (namespace) => namespace === "slow");
      const { region } = world;
      await world.order("slow", 1_000, 500);
      await region.clock.advance(30_000);
      assert.ok(world.held <= workers / 4, `${world.held} held`);
      for (let nth = 0; nth < 20; nth++) await world.order(`healthy-${nth}`, nth, 1);
      await region.until(
        "the healthy ones are applied",
        async () => {
          const counts = await Promise.all(
            Array.from({ length: 20 }, (_, nth) => world.countIn(`healthy-${nth}`)),
          );
          return counts.every((count) => count === 1);
        },
        3_000,
      );
      await region.clock.advance(120_000);
      assert.ok(world.held <= workers / 4, `${world.held} held`);
      // Before it is known to be slow, its policy was applied at once.
      assert.ok(world.heldMax < workers / 2, `${world.heldMax} held`);
      world.webhook = undefined;
      await region.until("the slow ones follow", async () => (await world.countIn("slow")) === 500, 180_000);
      await region.stop();
    });
});

test("slow answers in every other namespace leave workers for the rest", async () => {
  const world = await World.start("slow", (namespace) => namespace.startsWith("slow"));
  const { region } = world;
  for (let nth = 0; nth < 20; nth++) await world.order(`slow-${nth}`, 1_000 + nth * 20, 20);
  // By now each of them is known to be slow.
  await region.clock.advance(60_000);
  assert.ok(world.held <= workers / 2, `${world.held} held`);
  for (let nth = 0; nth < 10; nth++) await world.order(`healthy-${nth}`, nth, 1);
  await region.until(
    "the healthy ones are applied",
    async () => {
      const counts = await Promise.all(
        Array.from({ length: 10 }, (_, nth) => world.countIn(`healthy-${nth}`)),
      );
      return counts.every((count) => count === 1);
    },
    3_000,
  );
  await region.stop();
});

test("500 objects of a namespace that fail at once are retried together, not each on its own", async () => {
  const world = await World.start("fails at once", (namespace) => namespace === "broken");
  const { region } = world;
  await world.order("broken", 1_000, 500);
  await region.clock.advance(300_000);
  // 13 rounds with the shortest back-offs, each by a quarter of the workers.
  assert.ok(world.attempts <= 13 * (workers / 4), `${world.attempts} attempts in five minutes`);
  world.webhook = undefined;
  await region.until("all are applied", async () => (await world.countIn("broken")) === 500, 70_000);
  await region.stop();
});

test("one object that the server fails on does not delay the others of its namespace", async () => {
  const world = await World.start("fails at once", () => false);
  const { region } = world;
  world.isHookedName = (name) => name === "web-7";
  await world.order("acme", 7, 1);
  await region.clock.advance(120_000);
  assert.ok(world.attempts > 3, `${world.attempts} attempts`);
  await world.order("acme", 8, 3);
  await region.until("the others are applied", async () => (await world.countIn("acme")) === 3, 1_000);
  await region.stop();
});
