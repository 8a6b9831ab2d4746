// Measures the cost of a resync when everything is in sync. A pass starts every minute, and compares digests; that of an
// older agent requests every deployment. This waits for the next one.
import { questionsAtOnce } from "../../src/engine/controller.ts";
import { loadAuditedCalls } from "../../test/support/audit-log.ts";
import type { Workers } from "../worker-process.ts";
import type { QuestionResult, QuestionTask } from "../workers/question-client.ts";
import type { AgentProcess } from "./agent-process.ts";
import { type BenchRegion, controlToken, regionName } from "./bench-region.ts";
import { type SampleSet, sampleDeployment } from "./sample-set.ts";
import { settle } from "./throughput.ts";

export interface ResyncCost {
  readonly writes: number;
  readonly cpuSeconds: number;
}

const reads = new Set(["get", "list", "watch"]);
const passLimitMs = 180_000;

/** CPU-seconds of a bare client that requests every deployment, as a resync without digests does. */
export async function measureQuestions(
  region: BenchRegion,
  workers: Workers,
  set: SampleSet,
): Promise<number> {
  await settle(region);
  const [name = "", platform = ""] = regionName.split(".");
  const task: QuestionTask = {
    url: region.controlUrl,
    token: controlToken,
    region: { name, platform, label: regionName },
    ids: Array.from({ length: set.deployments }, (_, index) => sampleDeployment(set, index).deploymentId),
    inFlight: questionsAtOnce,
  };
  return (await workers.run<QuestionResult>("question-client", task)).cpuSeconds;
}

/** From the first call of a pass until there has been no call and no report for a second. */
export async function measureResync(
  region: BenchRegion,
  agent: AgentProcess,
  questions: number,
): Promise<ResyncCost> {
  const { calls, signal } = region;
  await settle(region);
  const writesBefore = await countWrites(region);
  const wait = { limitMs: passLimitMs, signal };
  let cpuBefore = 0;
  let left = questions - 1;
  await calls.until(
    "a resync begins",
    ({ kind }) => {
      if (kind === "report") return false;
      cpuBefore = agent.cpuSeconds();
      if (kind === "digest") left = 0;
      return true;
    },
    wait,
  );
  if (left > 0)
    await calls.until(
      `a resync asks ${questions} questions`,
      ({ kind }) => kind === "question" && --left === 0,
      wait,
    );
  await settle(region);
  const cpuSeconds = agent.cpuSeconds() - cpuBefore;
  return { writes: (await countWrites(region)) - writesBefore, cpuSeconds };
}

async function countWrites({ cluster }: BenchRegion): Promise<number> {
  const calls = await loadAuditedCalls(cluster.auditLogPath);
  return calls.filter(({ user, verb }) => user === cluster.agentUser && !reads.has(verb)).length;
}
