// A stream that ends between two of its messages: exactly so many arrive, and the connection is gone. In the end the
// cluster, its pods and the last report of every key are those of a run in which nothing happened (K2, K3).
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { sleep } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { pods } from "../../src/kube/resources.ts";
import { region, SimulatedRegion } from "./simulated-region.ts";
import { assertInOrder } from "./written-order.ts";

const never = new AbortController().signal;
const messages = 200;
const deployments = 12;
const everyBoundary = Array.from({ length: messages + 1 }, (_, index) => index);
const boundaries = process.env["KRANE_TEST_LONG"] === "1" ? everyBoundary : [0, 1, 88, 199];

/** Lets the messages of all streams through one by one, and ends a stream where it is told to. */
class CountedStreams {
  delivered = 0;
  cuts = 0;
  private readonly endsAfter: (delivered: number) => boolean;
  private readonly wait: () => Promise<void>;
  private isCut = false;

  /** `wait` is the time between the last message and the end. */
  constructor(endsAfter: (delivered: number) => boolean, wait: () => Promise<void>) {
    this.endsAfter = endsAfter;
    this.wait = wait;
  }

  readonly interceptor: Interceptor = (next) => async (request) => {
    const response = await next(request);
    if (!response.stream || request.method.localName !== "watchDeployments") return response;
    return { ...response, message: this.counted(response.message) };
  };

  private async *counted<T>(states: AsyncIterable<T>): AsyncIterable<T> {
    await this.cutIfDue();
    for await (const state of states) {
      this.isCut = false;
      this.delivered += 1;
      yield state;
      await this.cutIfDue();
    }
  }

  /** Once at each boundary, or a stream that has brought nothing since could never be opened again. */
  private async cutIfDue(): Promise<void> {
    if (this.isCut || !this.endsAfter(this.delivered)) return;
    this.isCut = true;
    this.cuts += 1;
    await this.wait();
    throw new ConnectError("cut between two messages", Code.Unavailable);
  }
}

async function change(world: SimulatedRegion, step: number, choice: number): Promise<bigint> {
  const index = step % deployments;
  const { admin } = world.plane;
  const row = (await admin.deployments(region)).find(({ id }) => id === `d_${index}`);
  if (row?.desired === "running" && choice < 0.3) return admin.deleteDeployment(region, `d_${index}`);
  return world.setDeployment(index, {
    image: `registry.example/acme/web:${step}`,
    replicas: Math.floor(choice * 4),
    environmentId: `env_${index % 3}`,
    port: 8000 + (index % 5),
  });
}

async function run(endsAfter: (delivered: number) => boolean, { afterMs = 0 } = {}) {
  const streams: CountedStreams = new CountedStreams(endsAfter, async () => {
    if (afterMs > 0) await sleep(world.clock, afterMs, never);
  });
  const world = await SimulatedRegion.create({ withPods: true, interceptors: [streams.interceptor] });
  const choices = createSeededRandom(42);
  const limitMs = 60_000 + 5 * afterMs;
  const agent = await world.startAgent();
  for (let step = 0; step < messages; step++) {
    const version = await change(world, step, choices.next());
    // The next one is made when this one has arrived, so that none takes the place of another on the way.
    await world.until(`message ${version} arrives`, () => streams.delivered > step, limitMs);
  }
  const isSettled = () => agent.controller.status().stream?.cursor === BigInt(messages);
  await world.until("everything is settled", isSettled, limitMs);
  await world.clock.advance(90_000);
  assertInOrder(agent.writes);
  const ending = await endOf(world);
  await world.stop();
  const { delivered, cuts } = streams;
  return { ending, delivered, cuts };
}

/** All that is alike in two runs: pods have names and addresses of their own in each. */
async function endOf(world: SimulatedRegion) {
  const objects = [...(await world.replicaSets()), ...(await world.policies())];
  const reports: unknown[] = [];
  const reported: string[] = [];
  for (const { id } of await world.plane.admin.deployments(region)) {
    const { exists, instances = [] } = (await world.plane.admin.deploymentReport(region, id)) ?? {};
    reports.push([id, exists, instances.map(({ status }) => status)]);
    for (const { k8sName } of instances) reported.push(k8sName);
  }
  const live = (await world.list(pods)).map(({ metadata }) => metadata?.name ?? "");
  assert.deepEqual(reported.sort(), live.sort());
  return {
    objects: objects.map(({ metadata, spec }) => {
      const { name, labels, annotations } = metadata ?? {};
      return { name, labels, annotations, spec };
    }),
    pods: live.length,
    reports,
  };
}

const undisturbed = run(() => false);

test("without a cut every message of the script arrives once", async () => {
  const { delivered, cuts, ending } = await undisturbed;
  assert.deepEqual([delivered, cuts], [messages, 0]);
  assert.ok(ending.pods > deployments, "there are pods to report");
});

for (const boundary of boundaries) {
  test(`a stream that is cut after message ${boundary} changes nothing in the end`, async () => {
    const { ending, cuts } = await run((delivered) => delivered === boundary);
    assert.equal(cuts, 1);
    assert.deepEqual(ending, (await undisturbed).ending);
  });
}

test("streams whose tenth message dribbles in until krane gives up change nothing in the end", async () => {
  const { ending, cuts } = await run((delivered) => delivered % 10 === 0, { afterMs: 60_000 });
  assert.ok(cuts >= messages / 10, `${cuts} cuts`);
  assert.deepEqual(ending, (await undisturbed).ending);
});

test("streams that are cut after each message change nothing in the end", async () => {
  const { ending, cuts } = await run(() => true);
  assert.ok(cuts > messages, `${cuts} cuts`);
  assert.deepEqual(ending, (await undisturbed).ending);
});
