// Resyncs of a whole agent that compares digests: what a pass costs, what it finds, and digests that fail or lie.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, type Interceptor } from "@connectrpc/connect";
import fc from "fast-check";
import type {
  GetDesiredDigestRequest,
  GetDesiredDigestResponse,
  ListDesiredContentsResponse,
} from "../../src/gen/ctrl/v1/digest_pb.ts";
import { deployment, region, type SimulatedAgent, SimulatedRegion } from "./simulated-region.ts";

const passMs = 61_000;
const hourMs = 3_600_000;
// A replay would bring what a pass is to find.
const withoutReplays = { replayMs: 0 };
const always = Number.POSITIVE_INFINITY;

interface Calls {
  /** The names of the calls that a resync makes, in order. */
  readonly names: string[];
  /** The ids that were asked for. */
  readonly ids: Set<string>;
  /** Whether the last digest was the one that the agent has. */
  isSame: boolean;
}

interface Lies {
  digest?(request: GetDesiredDigestRequest, response: GetDesiredDigestResponse): void;
  contents?(response: ListDesiredContentsResponse): void;
}

/** A region in sync, some time after the first pass. */
async function inSync(count: number) {
  const calls: Calls = { names: [], ids: new Set(), isSame: false };
  const lies: Lies = {};
  const listen: Interceptor = (next) => async (call) => {
    const { name } = call.method;
    if (!/^(GetDesired|ListDesired)/.test(name)) return next(call);
    calls.names.push(name);
    const id: unknown = Reflect.get(call.message, "deploymentId");
    if (typeof id === "string") calls.ids.add(id);
    const response = await next(call);
    if (name === "GetDesiredDigest") {
      const request = call.message as GetDesiredDigestRequest;
      const digest = response.message as GetDesiredDigestResponse;
      calls.isSame = Buffer.compare(request.knownSum, digest.sum) === 0;
      lies.digest?.(request, digest);
    } else if (name === "ListDesiredContents") {
      lies.contents?.(response.message as ListDesiredContentsResponse);
    }
    return response;
  };
  const world = await SimulatedRegion.create({ interceptors: [listen] });
  for (let index = 1; index <= count; index++) await world.setDeployment(index, { replicas: 0 });
  const agent = await world.startAgent(withoutReplays);
  await world.until("all are there", async () => (await world.replicaSets()).length === count);
  // Older than what is kept for its age alone.
  await world.clock.advance(310_000);
  const forgetCalls = () => {
    calls.names.length = 0;
    calls.ids.clear();
  };
  forgetCalls();
  return { world, agent, calls, lies, forgetCalls };
}

function deletes(agent: SimulatedAgent): number {
  return agent.writes.filter(({ verb }) => verb === "delete").length;
}

test("passes in sync are one call each, and only what differs is asked for", async () => {
  const { world, calls, forgetCalls } = await inSync(10);
  await world.clock.advance(3 * passMs);
  assert.deepEqual(calls.names, Array(3).fill("GetDesiredDigest"));
  forgetCalls();
  world.plane.faults.insertBehind(region, "deployment", deployment(11, { replicas: 0 }), 3n);
  await world.until("it is found", async () => (await world.replicaSets()).length === 11, passMs);
  assert.deepEqual(calls.names, ["GetDesiredDigest", "ListDesiredContents", "GetDesiredDeploymentState"]);
  forgetCalls();
  await world.clock.advance(passMs);
  assert.deepEqual(calls.names, ["GetDesiredDigest"]);
  await world.stop();
});

for (const [what, rpc, isSlow] of [
  ["digests that fail", "getDesiredDigest", false],
  ["digests that take too long", "getDesiredDigest", true],
  ["lists that fail", "listDesiredContents", false],
  ["lists that take too long", "listDesiredContents", true],
] as const)
  test(`${what}: every object is asked for, and nothing is deleted because of absence until they work`, async () => {
    const { world, agent, calls } = await inSync(10);
    if (isSlow) world.plane.faults.hangNext(rpc, always);
    else world.plane.faults.failNext(rpc, Code.Unavailable, always);
    world.plane.faults.insertBehind(region, "deployment", deployment(5, { replicas: 2 }), 5n);
    await world.plane.admin.forgetDeployment(region, "d_4");
    await world.clock.advance(hourMs / 4);
    assert.deepEqual([deletes(agent), agent.controller.status().blockedDeletions], [0, 0]);
    assert.ok(calls.ids.size >= 10);
    const changed = (await world.replicaSets()).find(({ metadata }) => metadata?.name === "web-5");
    assert.equal(changed?.spec?.replicas, 2, "found without digests");
    world.plane.faults.heal();
    await world.until(
      "the object that the control plane lost is deleted",
      async () => !(await world.replicaSetNames()).includes("web-4"),
      5 * passMs,
    );
    assert.equal(deletes(agent), 1);
    await world.stop();
  });

test("a digest that is always the agent's own hides a difference for no longer than an hour", async () => {
  const { world, agent, lies, calls } = await inSync(10);
  lies.digest = ({ knownSum }, response) => {
    if (knownSum.byteLength > 0) Object.assign(response, { sum: knownSum, buckets: new Uint8Array() });
  };
  await world.plane.admin.forgetDeployment(region, "d_4");
  await world.clock.advance(hourMs / 2);
  assert.deepEqual([...calls.ids], []);
  await world.until("it is asked for", () => calls.ids.has("d_4"), hourMs);
  await world.clock.advance(hourMs / 4);
  assert.equal(deletes(agent), 0, "lists that do not lack it three times in a row are no absence");
  await world.stop();
});

test("lists without objects that the control plane still sends lead to no delete and no suspicion", async () => {
  const { world, agent, lies, calls } = await inSync(10);
  lies.digest = (_, response) => {
    Object.assign(response, { sum: new Uint8Array(32), buckets: new Uint8Array(256 * 32) });
  };
  lies.contents = ({ buckets }) => {
    for (const bucket of buckets) Object.assign(bucket, { sum: new Uint8Array(32), entries: [] });
  };
  await world.clock.advance(hourMs / 4);
  assert.equal(calls.ids.size, 10);
  assert.deepEqual([deletes(agent), agent.controller.status().blockedDeletions], [0, 0]);
  await world.stop();
});

test("lists and responses that know no object lead to no delete, and say so", async () => {
  const { world, agent, lies } = await inSync(10);
  lies.digest = (_, response) => {
    Object.assign(response, { sum: new Uint8Array(32), buckets: new Uint8Array(256 * 32) });
  };
  lies.contents = ({ buckets }) => {
    for (const bucket of buckets) Object.assign(bucket, { sum: new Uint8Array(32), entries: [] });
  };
  world.plane.faults.failNext("getDesiredDeploymentState", Code.NotFound, always);
  await world.clock.advance(4 * passMs);
  assert.deepEqual([deletes(agent), agent.controller.status().blockedDeletions], [0, 10]);
  await world.stop();
});

type Act = "set" | "delete" | "scale" | "lose" | "restart" | "cut" | "trim" | "wait";
const acts = fc.array(
  fc.record({
    act: fc.constantFrom<Act>("set", "set", "scale", "delete", "lose", "restart", "cut", "trim", "wait"),
    index: fc.integer({ min: 1, max: 5 }),
  }),
  { maxLength: 15 },
);

test("any changes, lost notifications, restarts and trims end in equal digests, and any one difference is found in one pass", async () => {
  await fc.assert(
    fc.asyncProperty(acts, fc.constantFrom("flipped", "missing", "extra"), async (list, difference) => {
      const { world, agent: first, calls, forgetCalls } = await inSync(3);
      let agent = first;
      let replicas = 0;
      const { admin, faults, store } = world.plane;
      const isThere = async (index: number) =>
        (await admin.deployments(region)).some(
          ({ id, desired }) => id === `d_${index}` && desired === "running",
        );
      for (const { act, index } of list) {
        replicas += 1;
        if (act === "set") await world.setDeployment(index, { replicas });
        if (act === "scale" && (await isThere(index))) await admin.scale(region, `d_${index}`, replicas);
        if (act === "delete" && (await isThere(index))) await admin.deleteDeployment(region, `d_${index}`);
        if (act === "lose" && !(await isThere(index)))
          faults.insertBehind(region, "deployment", deployment(index, { replicas }), 1n);
        if (act === "restart") {
          await agent.kill();
          agent = await world.startAgent(withoutReplays);
        }
        if (act === "cut") faults.cutStreams();
        if (act === "trim") await store.trimHistory({ ageMaxMs: 0, entriesMax: 0 }, world.clock.wallMs());
        if (act === "wait") await world.clock.advance(20_000);
      }
      // Within a minute the stream is back, and a pass finds what it did not bring.
      await world.clock.advance(3 * passMs);
      forgetCalls();
      await world.clock.advance(passMs);
      assert.deepEqual([new Set(calls.names), calls.isSame], [new Set(["GetDesiredDigest"]), true]);

      await world.setDeployment(6, { replicas: 1 });
      await world.clock.advance(passMs);
      const { version = 0n } = agent.controller.desired.get("acme/web-6") ?? {};
      forgetCalls();
      if (difference === "flipped")
        faults.insertBehind(region, "deployment", deployment(6, { replicas: 2 }), version);
      else if (difference === "missing") await admin.forgetDeployment(region, "d_6");
      else faults.insertBehind(region, "deployment", deployment(7, { replicas: 2 }), version + 1n);
      await world.clock.advance(passMs);
      const id = difference === "extra" ? "d_7" : "d_6";
      assert.deepEqual([...calls.ids], [id]);
      const wanted = agent.controller.desired.get(difference === "extra" ? "acme/web-7" : "acme/web-6")?.want;
      assert.ok(wanted?.kind === "apply");
      assert.equal(wanted.spec.replicas, difference === "missing" ? 1 : 2);
      await world.stop();
    }),
    { numRuns: process.env["KRANE_TEST_LONG"] === "1" ? 300 : 8 },
  );
});
