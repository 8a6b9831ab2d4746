// Sends all manifests of a set of deployments with a given concurrency and nothing else: the raw limit for the agent
// with the same set.
import { rawManifests, type SampleSet } from "../deployments/sample-set.ts";
import { finish, takeTask } from "./parent.ts";
import { openRawConnection, type RawPatch } from "./raw-applier.ts";
import { cpuSeconds } from "./resources.ts";

export interface ManifestTask {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
  readonly inFlight: number;
  readonly set: SampleSet;
}

export interface ManifestResult {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

const task = takeTask<ManifestTask>();
const connection = openRawConnection({ ...task, connections: task.inFlight });
const { stages } = rawManifests(task.set);

async function send(patches: readonly RawPatch[]): Promise<void> {
  const waiting = patches.values();
  const caller = async () => {
    for (const patch of waiting) await connection.patch(patch);
  };
  await Promise.all(Array.from({ length: task.inFlight }, caller));
}

const before = { cpu: cpuSeconds(), ms: performance.now() };
for (const stage of stages) await send(stage);
const result: ManifestResult = {
  seconds: (performance.now() - before.ms) / 1000,
  cpuSeconds: cpuSeconds() - before.cpu,
};
finish(result);
