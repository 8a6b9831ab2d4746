// Applies ReplicaSets with a given concurrency, through krane's client or through bare node:https, and reports the
// cost.

import { sampleReplicaSet } from "../sample-objects.ts";
import type { ApplyResult, ApplyTask } from "./apply-task.ts";
import { connectKrane } from "./krane-applier.ts";
import { finish, takeTask } from "./parent.ts";
import { connectRaw } from "./raw-applier.ts";
import { cpuSeconds, peakResidentMb } from "./resources.ts";

const task = takeTask<ApplyTask>();
const apply = task.side === "krane" ? connectKrane(task) : connectRaw(task);
const oneObject = sampleReplicaSet(task.namespace, "application");

async function applyAll(count: number, phase: string): Promise<void> {
  let next = 0;
  const caller = async () => {
    while (next < count) {
      const name = `${task.namePrefix}-${phase}-${next++}`;
      await apply(task.namePrefix === undefined ? oneObject : sampleReplicaSet(task.namespace, name));
    }
  };
  await Promise.all(Array.from({ length: task.callers }, caller));
}

await applyAll(task.warmUp, "w");
const before = { cpu: cpuSeconds(), ms: performance.now() };
await applyAll(task.count, "m");
const result: ApplyResult = {
  cpuSeconds: cpuSeconds() - before.cpu,
  seconds: (performance.now() - before.ms) / 1000,
  peakMb: peakResidentMb(),
};
finish(result);
