// Two agent processes of one region on a real Kubernetes. Whatever happens to the leader in the middle of its work: no write
// of it arrives after the first one of its successor, no object goes back to an older version, and none is deleted.
//
// With KRANE_TEST_LONG=1 each fault comes 20 times with 2,000 objects; KRANE_TEST_FAILOVERS is another number.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { defaultLeaseTimes } from "../../../src/kube/lease-state.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../../support/deployed-rights.ts";
import { eventually } from "../../support/eventually.ts";
import { FailoverRegion, type LinkedAgent } from "../../support/failover-region.ts";
import { buildKrane } from "../../support/krane-process.ts";

const cluster = clusterUnderTest();
const isLong = process.env["KRANE_TEST_LONG"] === "1";
const objects = isLong ? 2_000 : 100;
const times = Number(process.env["KRANE_TEST_FAILOVERS"] ?? (isLong ? 20 : 1));
const hourMs = 3_600_000;
let krane: Awaited<ReturnType<typeof buildKrane>>;
let account: ServiceAccountAccess;

before(async () => {
  krane = await buildKrane();
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await cluster.empty();
  await krane.remove();
});

interface Pair {
  readonly region: FailoverRegion;
  leader: LinkedAgent;
  standby: LinkedAgent;
}

interface Fault {
  readonly name: string;
  begin(leader: LinkedAgent): void;
  /** Called when the successor has done its work. Returns the agent that is a standby from now on. */
  end(former: LinkedAgent, region: FailoverRegion): Promise<LinkedAgent>;
}

// Longer than a standby waits.
const blockMs = defaultLeaseTimes.durationMs + 3 * defaultLeaseTimes.retryMs;

/** Each of them costs the leader its lease. */
const faults: readonly Fault[] = [
  {
    name: "SIGKILL",
    begin: (leader) => leader.kill(),
    end: (_, region) => region.startAgent(),
  },
  {
    name: isLong ? "SIGSTOP for 60 s" : "SIGSTOP until the successor is done",
    begin: (leader) => leader.stall(),
    async end(former) {
      if (isLong) await delay(60_000);
      former.resume();
      return former;
    },
  },
  {
    name: "partition from the API server",
    begin: (leader) => void leader.links.cluster.hold(),
    async end(former) {
      former.links.cluster.deliver();
      return former;
    },
  },
  {
    name: `event loop blocked for ${blockMs / 1_000} s`,
    begin: (leader) => leader.block(blockMs),
    end: async (former) => former,
  },
];

/** In the middle of a bulk. Returns how long it took until the standby led. */
async function failOver(pair: Pair, { begin, end }: Fault): Promise<number> {
  const { region, leader, standby } = pair;
  const busy = region.untilBusy(leader, objects / 10);
  await region.change();
  await busy;
  const beganMs = performance.now();
  begin(leader);
  await region.untilLeads(standby);
  const tookMs = (region.terms.at(-1)?.seenMs ?? assert.fail("nobody leads")) - beganMs;
  await region.untilApplied();
  pair.leader = standby;
  pair.standby = await end(leader, region);
  await region.untilStandby(pair.standby);
  await region.assertOneWriter();
  return tookMs;
}

/** The leader does not hear of half of the changes, and reports nothing, until the partition is over. */
async function cutOffFromControlPlane({ region, leader }: Pair): Promise<void> {
  await region.change(0, objects / 2);
  const held = leader.links.controlPlane.hold();
  await region.change(objects / 2);
  await eventually("it has noticed", () => assert.ok(held.areGivenUp(), "not yet"), { deadlineMs: 60_000 });
  leader.links.controlPlane.deliver();
  await region.untilApplied();
}

async function stepClock({ region, leader }: Pair, byMs: number): Promise<void> {
  const busy = region.untilBusy(leader, objects / 10);
  await region.change();
  await busy;
  leader.stepClock(byMs);
  await region.untilApplied();
}

/** What does not cost the leader its lease. */
async function keepLeading(pair: Pair, disturb: () => Promise<void>): Promise<void> {
  const terms = pair.region.terms.length;
  await disturb();
  assert.equal(pair.region.terms.length, terms, "the leader has kept its lease");
  await pair.region.assertOneWriter();
}

/** Returns how long it took until the standby led. */
async function stopInSync(pair: Pair): Promise<number> {
  const { region, leader, standby } = pair;
  const before = (await region.writesOf(standby.id)).length;
  const beganMs = performance.now();
  await leader.stop();
  await region.untilLeads(standby);
  const tookMs = (region.terms.at(-1)?.seenMs ?? assert.fail("nobody leads")) - beganMs;
  await region.untilSettled(standby);
  assert.equal((await region.writesOf(standby.id)).length, before, "the successor has written nothing");
  pair.leader = standby;
  pair.standby = await region.startAgent();
  await region.untilStandby(pair.standby);
  await region.assertOneWriter();
  return tookMs;
}

test("two agents are never two writers", async (t) => {
  const region = await FailoverRegion.start(t, { cluster, account, program: krane.program, objects });
  const [leader, standby] = [await region.startAgent(), await region.startAgent()];
  const pair: Pair = { region, leader, standby };
  await region.untilLeads(leader);
  await region.untilStandby(standby);
  await region.change();
  await region.untilApplied();
  const tell = (name: string, took: readonly number[]) => t.diagnostic(`${name}: ${describeTimes(took)}`);

  for (const fault of faults)
    await t.test(fault.name, async () => {
      const took: number[] = [];
      for (let round = 0; round < times; round++) took.push(await failOver(pair, fault));
      tell(fault.name, took);
    });
  await t.test("partition from the control plane", async () => {
    for (let round = 0; round < times; round++) await keepLeading(pair, () => cutOffFromControlPlane(pair));
  });
  await t.test("clock stepped by an hour, forward and back", async () => {
    for (let round = 0; round < times; round++)
      for (const byMs of [hourMs, -hourMs]) await keepLeading(pair, () => stepClock(pair, byMs));
  });
  await t.test("stopped while everything is in sync", async () => {
    const took: number[] = [];
    for (let round = 0; round < times; round++) took.push(await stopInSync(pair));
    tell("clean stop", took);
  });
  const { durationMs, renewDeadlineMs, retryMs } = defaultLeaseTimes;
  const settings = [durationMs, renewDeadlineMs, retryMs].map((each) => `${each / 1_000} s`).join(" / ");
  t.diagnostic(`the lease: ${settings}; ${region.writes.length} writes in ${region.terms.length} terms`);
});

function describeTimes(tookMs: readonly number[]): string {
  const sorted = [...tookMs].sort((one, other) => one - other);
  const seconds = (ms = 0) => `${(ms / 1_000).toFixed(1)} s`;
  const p50 = sorted[Math.ceil(sorted.length / 2) - 1];
  return `${sorted.length} take-overs, p50 ${seconds(p50)}, max ${seconds(sorted.at(-1))}`;
}
