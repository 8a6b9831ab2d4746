// Three controllers share one process and nothing else. Measures how long a change of two of them takes while the
// third fails in every way that the simulations know, compared with no failure.
import type { Benchmark } from "./benchmark.ts";
import { type Changes, watchChanges } from "./isolation/change-latency.ts";
import { command } from "./isolation/commands.ts";
import { startServers } from "./isolation/servers.ts";
import { percentile } from "./statistics.ts";
import { type Workers, withWorkers } from "./worker-process.ts";
import type { DisturbCommand, DisturbedFacts, DisturbedTask } from "./workers/disturbed-servers.ts";
import type { ControllersCommand, ControllersTask } from "./workers/isolated-controllers.ts";

const goal = { p50: 1.25, p99: 2 };
const rounds = 3;
const changesPerTurn = 100;
const pauseMs = 4;
const settleMs = 1_500;
const warmUpChanges = 400;
const keys = 200;
const floodMessages = 50_000;
const poisonMessages = 5_000;

const failures = ["errors", "hangs", "crash", "flood", "poison"] as const;
type Failure = (typeof failures)[number];

interface Times {
  readonly undisturbed: number[];
  readonly disturbed: number[];
}

interface Agent {
  begin(failure: Failure, round: number): Promise<void>;
  end(): Promise<void>;
}

async function run(interrupted: AbortSignal): Promise<readonly string[]> {
  const ending = new AbortController();
  const signal = AbortSignal.any([interrupted, ending.signal]);
  const servers = await startServers([], signal);
  try {
    return await withWorkers(["disturbed-servers", "isolated-controllers"], interrupted, async (workers) => {
      const agent = await startAgent(workers, servers.addresses, signal);
      const changes = watchChanges(servers, signal);
      return report(await measure(agent, changes));
    });
  } finally {
    ending.abort();
    await servers.stop();
  }
}

async function startAgent(
  workers: Workers,
  others: ControllersTask["others"],
  signal: AbortSignal,
): Promise<Agent> {
  const disturbed: DisturbedTask = { keys };
  const { addresses, commands } = await workers.start<DisturbedFacts>("disturbed-servers", disturbed);
  const disturb = (what: DisturbCommand) => command(commands, what, signal);
  await disturb({ do: "change all" });
  const task: ControllersTask = { disturbed: addresses, others };
  const controllers = await workers.start<string>("isolated-controllers", task);
  const control = (what: ControllersCommand) => command(controllers, what, signal);
  return {
    async begin(failure, round) {
      const peer = round % 2 === 0 ? "Kubernetes" : "control plane";
      if (failure === "errors" || failure === "hangs") return disturb({ do: failure, peer });
      if (failure === "flood") return disturb({ do: "flood", messages: floodMessages });
      if (failure === "poison") return disturb({ do: "poison", messages: poisonMessages });
      await control({ do: "crash" });
    },
    async end() {
      await disturb({ do: "end" });
      await control({ do: "restart" });
      // Its reports right after a start are not part of any measurement.
      await new Promise((resolve) => setTimeout(resolve, settleMs));
    },
  };
}

/** Undisturbed and disturbed rounds alternate, so that noise on the machine affects both. */
async function measure(agent: Agent, changes: Changes): Promise<ReadonlyMap<Failure, Times>> {
  const times = new Map(
    failures.map((failure): [Failure, Times] => [failure, { undisturbed: [], disturbed: [] }]),
  );
  await agent.end();
  await measureTurn(changes, warmUpChanges);
  for (let round = 0; round < rounds; round++) {
    for (const [failure, { undisturbed, disturbed }] of times) {
      undisturbed.push(...(await measureTurn(changes, changesPerTurn)));
      await agent.begin(failure, round);
      disturbed.push(...(await measureTurn(changes, changesPerTurn)));
      await agent.end();
    }
  }
  return times;
}

async function measureTurn(changes: Changes, count: number): Promise<readonly number[]> {
  const times: number[] = [];
  for (let nth = 0; nth < count; nth++) {
    times.push(await changes.measure());
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return times;
}

function report(times: ReadonlyMap<Failure, Times>): readonly string[] {
  return [...times].map(([failure, { undisturbed, disturbed }]) => {
    const figures = ([50, 99] as const).map((percent) => {
      const [a, b] = [percentile(undisturbed, percent), percentile(disturbed, percent)];
      const limit = percent === 50 ? goal.p50 : goal.p99;
      const verdict = b / a <= limit ? "met" : "MISSED";
      return `p${percent} ${b.toFixed(1)} ms, undisturbed ${a.toFixed(1)} ms, ratio ${(b / a).toFixed(2)} (goal: at most ${limit}, ${verdict})`;
    });
    return `${failure.padEnd(6)}: ${figures.join("; ")}`;
  });
}

export const isolationBenchmark: Benchmark = {
  name: "isolation",
  measures: "changes of two controllers while the third one of the same process fails",
  run,
};
