// What an agent of a large region needs, in two processes: a control plane and the embedded API server.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { kubeconfigFor } from "../../test/support/served-cluster.ts";
import { type AgentProcess, startAgent } from "../deployments/agent-process.ts";
import { command } from "../isolation/commands.ts";
import { controlToken, regionKey } from "../isolation/servers.ts";
import { type Workers, withWorkers } from "../worker-process.ts";
import type { ScaleClusterCommand, ScaleClusterFacts } from "../workers/scale-cluster.ts";
import type {
  PlaneFigures,
  ScalePlaneCommand,
  ScalePlaneFacts,
  ScalePlaneTask,
} from "../workers/scale-plane.ts";

export interface ScaleServers {
  readonly workers: Workers;
  readonly addresses: { readonly kubernetes: string; readonly controlPlane: string };
  plane(what: ScalePlaneCommand): Promise<void>;
  figures(): Promise<PlaneFigures>;
  cluster(what: ScaleClusterCommand): Promise<number>;
  startAgent(): Promise<AgentProcess>;
  /** Aborts when an agent has ended that should run. */
  readonly signal: AbortSignal;
}

const lookEveryMs = 250;

/** `names`: further workers that the benchmark starts. */
export async function withScaleServers<T>(
  task: ScalePlaneTask,
  names: readonly string[],
  interrupted: AbortSignal,
  work: (servers: ScaleServers) => Promise<T>,
): Promise<T> {
  const broken = new AbortController();
  const signal = AbortSignal.any([interrupted, broken.signal]);
  const folder = await mkdtemp(join(tmpdir(), "krane-bench-"));
  const agents = new Set<AgentProcess>();
  try {
    return await withWorkers(["scale-plane", "scale-cluster", ...names], interrupted, async (workers) => {
      const plane = await workers.start<ScalePlaneFacts>("scale-plane", task);
      const cluster = await workers.start<ScaleClusterFacts>("scale-cluster", null);
      const kubeconfigPath = join(folder, "kubeconfig");
      await writeFile(kubeconfigPath, kubeconfigFor(cluster.url), { mode: 0o600 });
      const options = { region: regionKey.label, controlUrl: plane.url, controlToken, kubeconfigPath };
      try {
        return await work({
          workers,
          signal,
          addresses: { kubernetes: cluster.url, controlPlane: plane.url },
          plane: (what) => command<ScalePlaneCommand>(plane.commands, what, signal),
          figures: () => command<ScalePlaneCommand, PlaneFigures>(plane.commands, { do: "figures" }, signal),
          cluster: (what) => command<ScaleClusterCommand, number>(cluster.commands, what, signal),
          async startAgent() {
            const agent = await startAgent(options, (reason) => broken.abort(reason), signal);
            agents.add(agent);
            return { ...agent, stop: () => agent.stop().finally(() => agents.delete(agent)) };
          },
        });
      } finally {
        for (const agent of agents) await agent.stop();
      }
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Waits until the figures of the control plane are as wanted; returns them. */
export async function untilFigures(
  what: string,
  { figures, signal }: ScaleServers,
  isReached: (now: PlaneFigures) => boolean,
  limitMs: number,
): Promise<PlaneFigures> {
  const endMs = performance.now() + limitMs;
  for (;;) {
    const now = await figures();
    if (isReached(now)) return now;
    if (performance.now() > endMs)
      throw new Error(`not within ${limitMs / 1_000} s: ${what}; ${JSON.stringify(now)}`);
    await delay(lookEveryMs, undefined, { signal });
  }
}

/** The agent has applied everything that was set, and has told so. */
export function isInSync({ settled, version, busy }: PlaneFigures): boolean {
  return settled === version && busy === 0;
}
