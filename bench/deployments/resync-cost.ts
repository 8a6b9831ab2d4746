// What a pass of the resync costs when everything is as it should be. A pass begins every minute and
// asks for every deployment; here the next one is waited for.
import { loadAuditedCalls } from "../../test/support/audit-log.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { BenchRegion } from "./bench-region.ts";
import { settle } from "./throughput.ts";

export interface ResyncCost {
  readonly writes: number;
  readonly cpuSeconds: number;
  readonly seconds: number;
}

const reads = new Set(["get", "list", "watch"]);
const passLimitMs = 180_000;

/** From the first question until nothing has been asked or told for a second. */
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
  const begun = await calls.until(
    "a resync begins",
    ({ kind }) => {
      if (kind !== "question") return false;
      cpuBefore = agent.cpuSeconds();
      return true;
    },
    wait,
  );
  let left = questions - 1;
  const asked = await calls.until(
    `a resync asks ${questions} questions`,
    ({ kind }) => kind === "question" && --left === 0,
    wait,
  );
  await settle(region);
  const cpuSeconds = agent.cpuSeconds() - cpuBefore;
  return { writes: (await countWrites(region)) - writesBefore, cpuSeconds, seconds: (asked - begun) / 1000 };
}

async function countWrites({ cluster }: BenchRegion): Promise<number> {
  const calls = await loadAuditedCalls(cluster.auditLogPath);
  return calls.filter(({ user, verb }) => user === cluster.agentUser && !reads.has(verb)).length;
}
