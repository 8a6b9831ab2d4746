// One event per reconcile and per report. At a sample rate of 0, those that failed or were slow are still logged.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { createKeptLog } from "../support/kept-log.ts";
import { SimulatedRegion } from "./simulated-region.ts";

async function run(rate: number) {
  const kept = createKeptLog({ rate, slowThresholdMs: 1_000 });
  const world = await SimulatedRegion.create({ log: kept.log, withPods: true });
  for (const index of [1, 2, 3]) await world.setDeployment(index);
  // krane does not check it, and the API server rejects it.
  await world.setDeployment(4, { command: ["x".repeat(2_000_000)] });
  const agent = await world.startAgent({ resyncMs: 0, replayMs: 0 });
  const isThere = async () => (await world.replicaSets()).length === 3;
  await world.until("all but one are there", isThere);
  await world.clock.advance(20_000);
  world.plane.faults.failNext("reportDeploymentStatus", Code.Unavailable);
  await world.setDeployment(1, { replicas: 2 });
  await world.clock.advance(20_000);
  await world.stop();
  const keyed = (message: string) =>
    kept
      .of(message)
      .map(({ key, outcome, error }) => `${key} ${outcome}${error === undefined ? "" : " error"}`);
  return { agent, kept, reconciles: keyed("reconciled"), reports: keyed("reported") };
}

test("at a rate of 1, each reconcile that wrote and each report is one line", async () => {
  const { agent, kept, reconciles, reports } = await run(1);
  const applies = agent.writes.filter(({ verb, kind }) => verb === "apply" && kind === "ReplicaSet");
  for (const index of [1, 2, 3]) {
    const key = `acme/web-${index}`;
    const written = applies.filter((write) => write.key === key).length;
    assert.equal(reconciles.filter((line) => line === `${key} applied`).length, written, key);
    assert.ok(reports.includes(`${key} update`), key);
  }
  const [line] = kept.of("reconciled");
  assert.equal(typeof line?.["durationMs"], "number");
  assert.equal(line?.["controller"], "deployments");
});

test("at a rate of 0, only failures are logged", async () => {
  const { kept, reconciles, reports } = await run(0);
  // The rejected spec of the fourth is told in a line of its own; krane did not fail.
  assert.deepEqual(reconciles, []);
  assert.deepEqual(reports, ["acme/web-1 failed error"]);
  assert.equal(kept.of("reported")[0]?.["level"], "error");
});
