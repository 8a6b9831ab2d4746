// Two agent processes of one region on a real Kubernetes. Whatever happens to the leader in the middle of its work: no write
// of it arrives after the first one of its successor, no object goes back to an older version, and none is deleted.
//
// With KRANE_TEST_LONG=1 each fault comes 20 times with 2,000 objects. KRANE_TEST_FAILOVERS is another number of times,
// KRANE_TEST_OBJECTS of objects, and KRANE_TEST_BULK of objects that change at a time. KRANE_TEST_FAULTS is a pattern: only
// the faults whose names match come.
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
const objects = Number(process.env["KRANE_TEST_OBJECTS"] ?? (isLong ? 2_000 : 100));
const bulk = Number(process.env["KRANE_TEST_BULK"] ?? objects);
const times = Number(process.env["KRANE_TEST_FAILOVERS"] ?? (isLong ? 20 : 1));
const chosen = new RegExp(process.env["KRANE_TEST_FAULTS"] ?? "");
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
  /** How the former leader comes back; undefined if it does so by itself, or never. */
  readonly end?: (former: LinkedAgent) => void;
  /** How long it lasts at least. */
  readonly lastsMs?: number;
}

// Longer than a standby waits.
const blockMs = defaultLeaseTimes.durationMs + 3 * defaultLeaseTimes.retryMs;
const stopMs = isLong ? 60_000 : 0;
const kill = "SIGKILL";

/** Each of them costs the leader its lease. */
const faults: readonly Fault[] = [
  { name: kill, begin: (leader) => leader.kill() },
  {
    name: isLong ? `SIGSTOP for ${stopMs / 1_000} s` : "SIGSTOP until the successor is done",
    begin: (leader) => leader.stall(),
    end: (former) => former.resume(),
    lastsMs: stopMs,
  },
  {
    name: "partition from the API server",
    begin: (leader) => void leader.links.cluster.hold(),
    end: (former) => former.links.cluster.deliver(),
  },
  { name: `event loop blocked for ${blockMs / 1_000} s`, begin: (leader) => leader.block(blockMs) },
];

/** Makes new versions desired, and resolves in the middle of applying them. */
async function beginBulk(region: FailoverRegion, leader: LinkedAgent): Promise<void> {
  const busy = region.untilBusy(leader, bulk / 10);
  await region.change(bulk);
  await busy;
}

/** A fault in the middle of a bulk, which ends in the middle of one of the successor. Returns when that led. */
async function failOver(pair: Pair, { name, begin, end, lastsMs = 0 }: Fault): Promise<number> {
  const { region, leader, standby } = pair;
  await beginBulk(region, leader);
  const beganMs = performance.now();
  begin(leader);
  await region.untilLeads(standby);
  const tookMs = (region.terms.at(-1)?.seenMs ?? assert.fail("nobody leads")) - beganMs;
  await region.untilApplied();
  if (end !== undefined) {
    await delay(beganMs + lastsMs - performance.now());
    await beginBulk(region, standby);
    end(leader);
    await region.untilApplied();
  }
  pair.leader = standby;
  pair.standby = name === kill ? await region.startAgent() : leader;
  await region.untilStandby(pair.standby);
  await region.assertOneWriter();
  return tookMs;
}

/** The leader does not hear of half of the changes, and reports nothing, until the partition is over. */
async function cutOffFromControlPlane({ region, leader }: Pair): Promise<void> {
  await region.change(bulk / 2);
  const held = leader.links.controlPlane.hold();
  await region.change(bulk / 2);
  await eventually("it has noticed", () => assert.ok(held.areGivenUp(), "not yet"), { deadlineMs: 60_000 });
  leader.links.controlPlane.deliver();
  await region.untilApplied();
}

async function stepClock({ region, leader }: Pair, byMs: number): Promise<void> {
  await beginBulk(region, leader);
  leader.stepClock(byMs);
  await region.untilApplied();
}

/** What does not cost the leader its lease. Returns how long it took until everything was applied. */
async function keepLeading(pair: Pair, disturb: () => Promise<void>): Promise<number> {
  const terms = pair.region.terms.length;
  const beganMs = performance.now();
  await disturb();
  const tookMs = performance.now() - beganMs;
  assert.equal(pair.region.terms.length, terms, "the leader has kept its lease");
  await pair.region.assertOneWriter();
  return tookMs;
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
  const repeat = (name: string, what: string, once: () => Promise<number>) =>
    t.test(name, { skip: !chosen.test(name) && "not chosen" }, async () => {
      const took: number[] = [];
      for (let round = 1; round <= times; round++) {
        const tookMs = await once();
        took.push(tookMs);
        // Of a run that is ended before its time, only this is left.
        if (isLong) console.error(`${name}, ${round} of ${times}: ${what} after ${seconds(tookMs)}`);
      }
      t.diagnostic(`${name}: ${what} after ${describeTimes(took)}`);
    });

  for (const fault of faults) await repeat(fault.name, "the standby led", () => failOver(pair, fault));
  await repeat("partition from the control plane", "all was applied", () =>
    keepLeading(pair, () => cutOffFromControlPlane(pair)),
  );
  for (const [direction, byMs] of [
    ["forward", hourMs],
    ["back", -hourMs],
  ] as const)
    await repeat(`clock stepped ${direction} by an hour`, "all was applied", () =>
      keepLeading(pair, () => stepClock(pair, byMs)),
    );
  await repeat("stopped while everything is in sync", "the standby led", () => stopInSync(pair));
  const { durationMs, renewDeadlineMs, retryMs } = defaultLeaseTimes;
  const settings = [durationMs, renewDeadlineMs, retryMs].map((ms) => seconds(ms)).join(" / ");
  t.diagnostic(`the lease: ${settings}; ${region.writes.length} writes in ${region.terms.length} terms`);
});

function seconds(ms = 0): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function describeTimes(tookMs: readonly number[]): string {
  const sorted = tookMs.toSorted((one, other) => one - other);
  const p50 = sorted[Math.ceil(sorted.length / 2) - 1];
  return `${seconds(p50)} (p50), ${seconds(sorted.at(-1))} (max); ${sorted.length} times`;
}
