// The agent as it ships, as a process of its own between a control plane and a cluster.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { eventually } from "./eventually.ts";
import { fetchHttp1 } from "./http-clients.ts";
import { type Exit, startKrane, writeConfig } from "./krane-process.ts";

export interface AgentPlace {
  readonly program: string;
  readonly region: string;
  readonly controlPlane: { readonly url: string; readonly token: string };
  readonly kubeconfigPath: string;
  /** That its AgentService asks for. */
  readonly agentToken: string;
  /** TOML that comes after what every agent has. */
  readonly more?: string;
}

export interface AgentProcess {
  readonly pid: number;
  readonly url: string;
  readonly metricsUrl: string;
  /** As Kubernetes ends it; fails unless it goes well. */
  stop(): Promise<void>;
  /** Sends SIGKILL: from now on it does nothing more. */
  kill(): void;
  /** Stalls it, as a machine without CPU time would. */
  stall(): void;
  resume(): void;
  /** Blocks its event loop; only for a process that was started `withFaults`. */
  block(forMs: number): void;
  /** Steps what it takes for the wall clock; only for a process that was started `withFaults`. */
  stepClock(byMs: number): void;
  /** Resolves when the process is gone. */
  readonly gone: Promise<Exit>;
}

/** What a process does to itself when it is told to. */
interface OwnFault {
  readonly blockMs?: number;
  readonly stepMs?: number;
}

const faultsModule = `
let stepMs = 0;
const SystemDate = Date;
globalThis.Date = class extends SystemDate {
  constructor(...given) {
    if (given.length === 0) super(Date.now());
    else super(...given);
  }
  static now() {
    return SystemDate.now() + stepMs;
  }
};
process.on("message", (fault) => {
  stepMs += fault.stepMs ?? 0;
  const untilMs = performance.now() + (fault.blockMs ?? 0);
  while (performance.now() < untilMs);
});
process.channel.unref();
`;
const faultsOption = `--import=data:text/javascript;base64,${Buffer.from(faultsModule).toString("base64")}`;

/** Resolves when it has started, and fails with what it said when it ends instead. */
export async function startAgentProcess(
  t: TestContext,
  place: AgentPlace,
  env: Readonly<Record<string, string>> = {},
  { withFaults = false } = {},
): Promise<AgentProcess> {
  const config = await writeConfig(t, place.more);
  const { child, exit } = startKrane(
    t,
    place.program,
    ["agent", "--config", config.path],
    {
      UNKEY_REGION: place.region,
      UNKEY_CONTROL_PLANE_URL: place.controlPlane.url,
      UNKEY_CONTROL_PLANE_BEARER: place.controlPlane.token,
      UNKEY_KUBERNETES_KUBECONFIG: place.kubeconfigPath,
      UNKEY_AGENT_TOKEN: place.agentToken,
      ...(withFaults && { NODE_OPTIONS: faultsOption }),
      ...env,
    },
    { channel: withFaults },
  );
  const disturb = (fault: OwnFault) => void child.send(fault);
  const url = `http://127.0.0.1:${config.rpcPort}`;
  const gaveUp = new AbortController();
  const started = eventually(
    "the agent has started",
    async () => assert.equal((await fetchHttp1(`${url}/health/startup`)).status, 200),
    { signal: gaveUp.signal },
  );
  const died = exit.then(({ code, stderr }) => {
    gaveUp.abort();
    throw new Error(`the agent ended with ${code} instead of starting: ${stderr}`);
  });
  died.catch(() => undefined);
  await Promise.race([started, died]);
  return {
    pid: child.pid ?? assert.fail("the agent has no process"),
    url,
    metricsUrl: `http://127.0.0.1:${config.metricsPort}/metrics`,
    async stop() {
      child.kill("SIGTERM");
      const { code, stderr } = await exit;
      assert.deepEqual([code, stderr], [0, ""]);
    },
    kill: () => void child.kill("SIGKILL"),
    stall: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    block: (blockMs) => disturb({ blockMs }),
    stepClock: (stepMs) => disturb({ stepMs }),
    gone: exit,
  };
}
