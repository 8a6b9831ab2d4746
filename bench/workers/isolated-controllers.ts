// The three controllers of an agent in one process, as the agent runs them: each with separate connections. The
// disturbed one uses different servers than the others, and can be made to crash.

import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { Secret } from "../../src/config/secret.ts";
import { createControlPlane } from "../../src/control-plane/connection.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { fixedCredential } from "../../src/kube/credentials.ts";
import { createHttpTransport } from "../../src/kube/http-transport.ts";
import { createSealKey, Seal, sealKeyBytes } from "../../src/model/seal.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import {
  createFaultyControlPlane,
  createFaultyTransport,
  FaultSwitch,
} from "../../test/simulation/faulty-parts.ts";
import { deletionLimits } from "../../test/support/deletion-limits.ts";
import { serveCommands } from "../isolation/commands.ts";
import { type Addresses, controlToken, regionKey } from "../isolation/servers.ts";
import { takeTask, tellParent } from "./parent.ts";

const createDeploymentController = await kinds.deployment.loadController();
const createSentinelController = await kinds.sentinel.loadController();
const createPolicyController = await kinds.policy.loadController();

export interface ControllersTask {
  readonly disturbed: Addresses;
  readonly others: Addresses;
}

export type ControllersCommand =
  | { readonly do: "crash" }
  /** Restarts the disturbed controller without any fault; answered when it is idle. */
  | { readonly do: "restart" };

const task = takeTask<ControllersTask>();
const clock = createSystemClock();
const random = createSeededRandom(1);
const log = createLog(
  {
    level: "info",
    instance: { id: "bench", region: regionKey.label, version: "0" },
    sampling: { rate: 1, slowThresholdMs: 1_000 },
  },
  { write: () => undefined, random, clock },
);
const metrics = createMetrics({ version: "0", revision: "bench", nodeVersion: process.version });
const token = new Secret(controlToken);
const crashes = { kubernetes: new FaultSwitch(), controlPlane: new FaultSwitch() };
const engine = {
  workers: 16,
  deletion: deletionLimits,
} as const;
const rules = { registries: [] };

const options = {
  ...engine,
  rules,
  region: regionKey.label,
  secrets: { audience: "krane" },
  networkPolicy: "required",
  runtimeClass: "gvisor",
} as const;

function connect(controller: string, { kubernetes, controlPlane: baseUrl }: Addresses) {
  const endpoint = { server: kubernetes, credentials: fixedCredential({}) };
  const transport = createHttpTransport({ endpoint, connections: engine.workers }, { clock });
  const controlPlane = createControlPlane(
    {
      controller,
      baseUrl,
      region: regionKey,
      token: { current: async () => token, refresh: () => undefined },
    },
    { clock, log, metrics },
  );
  const close = async () => {
    await Promise.all([transport.close(), controlPlane.close()]);
  };
  return { transport, controlPlane, close };
}

const key = createSealKey(new Uint8Array(sealKeyBytes));
const seal = new Seal({ clusterId: "bench", region: options.region, keys: [key] });

async function startDisturbed() {
  const { transport, controlPlane, close } = connect("deployments", task.disturbed);
  const controller = createDeploymentController(options, {
    clock,
    random,
    log,
    metrics,
    api: createKubeApi(createFaultyTransport(transport, crashes.kubernetes, clock)),
    controlPlane: createFaultyControlPlane(controlPlane, crashes.controlPlane),
    seal,
  });
  await controller.start();
  return {
    isBusy() {
      const { queue, stream } = controller.status();
      const { waiting = 0, inFlight = 0 } = queue ?? {};
      return stream?.cursor === 0n || waiting + inFlight > 0;
    },
    async stop() {
      await controller.stop();
      await close();
    },
  };
}

async function startOthers(): Promise<void> {
  for (const name of ["cilium", "sentinels"] as const) {
    const { transport, controlPlane } = connect(name, task.others);
    const deps = { clock, random, log, metrics, api: createKubeApi(transport), controlPlane, seal };
    const controller =
      name === "cilium" ? createPolicyController(options, deps) : createSentinelController(options, deps);
    await controller.start();
  }
}

await startOthers();
let disturbed = await startDisturbed();

async function handle(command: ControllersCommand): Promise<void> {
  if (command.do === "crash") {
    crashes.kubernetes.begin({ kind: "crash", peer: "Kubernetes" });
    crashes.controlPlane.begin({ kind: "crash", peer: "control plane" });
    return;
  }
  crashes.kubernetes.end();
  crashes.controlPlane.end();
  await disturbed.stop();
  disturbed = await startDisturbed();
  while (disturbed.isBusy()) await new Promise((resolve) => setTimeout(resolve, 20));
}

tellParent(await serveCommands<ControllersCommand>(handle));
