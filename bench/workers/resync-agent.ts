// The controller of deployments, as an agent runs it, with a cluster that has everything. It passes
// through its resync every few seconds, so that many passes can be measured.
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { Secret } from "../../src/config/secret.ts";
import { createControlPlane } from "../../src/control-plane/connection.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { createSealKey, Seal, sealKeyBytes } from "../../src/model/seal.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { deletionLimits } from "../../test/support/deletion-limits.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import type { SampleSet } from "../deployments/sample-set.ts";
import { serveCommands } from "../isolation/commands.ts";
import { controlToken, regionKey } from "../isolation/servers.ts";
import { FilledCluster } from "../resync/filled-cluster.ts";
import { takeTask, tellParent } from "./parent.ts";
import { cpuSeconds, residentMb } from "./resources.ts";

export interface ResyncAgentTask {
  readonly controlPlane: string;
  readonly set: SampleSet;
  readonly passMs: number;
}

export interface AgentFigures {
  readonly cpuSeconds: number;
  readonly residentMb: number;
  /** When the last complete pass began, in milliseconds since 1970; 0 before the first. */
  readonly passStartedMs: number;
  /** By all passes. */
  readonly corrected: number;
  readonly writes: number;
  readonly settled: string;
  readonly isBusy: boolean;
}

const task = takeTask<ResyncAgentTask>();
const clock = createSystemClock();
const log = createQuietLog();
let corrected = 0;
const metrics = {
  ...createMetrics({ version: "0", revision: "bench", nodeVersion: process.version }),
  resyncCorrections: {
    inc(_labels: unknown, by = 1) {
      corrected += by;
    },
  },
};
const token = new Secret(controlToken);
const seal = new Seal({
  clusterId: "bench",
  region: regionKey.label,
  keys: [createSealKey(new Uint8Array(sealKeyBytes))],
});
const cluster = await FilledCluster.create(task.set, seal);
const controlPlane = createControlPlane(
  {
    controller: "deployments",
    baseUrl: task.controlPlane,
    region: regionKey,
    token: { current: async () => token, refresh: () => undefined },
  },
  { clock, log, metrics },
);
const createController = await kinds.deployment.loadController();
const controller = createController(
  {
    workers: 64,
    deletion: deletionLimits,
    rules: { registries: [] },
    region: regionKey.label,
    secrets: { audience: "krane" },
    networkPolicy: "required",
    runtimeClass: "gvisor",
    resyncMs: task.passMs,
    replayMs: 0,
  },
  { clock, random: createSeededRandom(1), log, metrics, api: cluster, controlPlane, seal },
);
await controller.start();

async function figures(): Promise<AgentFigures> {
  const { resync, queue, stream } = controller.status();
  return {
    cpuSeconds: cpuSeconds(),
    residentMb: residentMb(),
    passStartedMs: Number(resync?.lastStartedMs ?? 0n),
    corrected,
    writes: cluster.writes,
    settled: String(stream?.settledUpTo ?? 0n),
    isBusy: (queue?.waiting ?? 0) + (queue?.inFlight ?? 0) + (stream?.unsettled.length ?? 0) > 0,
  };
}

tellParent(await serveCommands<null>(figures));
