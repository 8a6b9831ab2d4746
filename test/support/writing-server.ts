// A whole server in a process of its own that changes desired state by itself, for tests
// that kill it. Every change is told on standard output after it was acknowledged, before
// anything else can happen.
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { readTextFile } from "../../src/cli/process/text-file.ts";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../src/concurrency/random.ts";
import { renderProblems } from "../../src/config/render.ts";
import { parseServerConfig } from "../../src/server/config/server-config.ts";
import { runServer, type StartedServer } from "../../src/server/run-server.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { applyDeployment } from "./deployment-messages.ts";
import { createStoreAdmin } from "./store-admin.ts";

export interface WritingServerPlan {
  readonly flags: Readonly<Record<string, string>>;
  readonly region: string;
  /** Tells the changes of one run from those of another. */
  readonly run: string;
  readonly deployments: number;
  /** How many changes to make. */
  readonly changes: number;
}

export type WritingServerLine =
  | { readonly kind: "started"; readonly port: number }
  | { readonly kind: "changed"; readonly id: string; readonly version: string; readonly image: string };

const stop = new AbortController();
const plan = JSON.parse(process.argv[2] ?? "") as WritingServerPlan;
const tell = (line: WritingServerLine) => writeSync(1, `${JSON.stringify(line)}\n`);

async function write({ store }: StartedServer): Promise<void> {
  const admin = createStoreAdmin(store, { clock: createSystemClock(), by: "test" });
  for (let number = 0; number < plan.changes && !stop.signal.aborted; number++) {
    const index = number % plan.deployments;
    const image = `registry.example/acme/web:${plan.run}-${number}`;
    const id = `d_${index}`;
    const spec = applyDeployment({ deploymentId: id, k8sName: `web-${index}`, image, replicas: 1 });
    try {
      const version = await admin.setDeployment(plan.region, spec);
      tell({ kind: "changed", id, version: `${version}`, image });
    } catch {
      // Not acknowledged; the next one may be.
      await delay(50);
    }
  }
}

const outcome = parseServerConfig({ env: {}, flags: plan.flags });
if (outcome.kind === "invalid") throw new Error(renderProblems(outcome.problems));
process.once("SIGTERM", () => stop.abort());
const clock = createSystemClock();
const random = createSystemRandom();
const log = createLog(
  {
    level: "warn",
    instance: { id: "server", region: "all", version: "0" },
    sampling: { rate: 1, slowThresholdMs: 0 },
  },
  { clock, random, write: (line) => void process.stderr.write(line) },
);
await runServer(
  outcome.config,
  {
    clock,
    random,
    log,
    build: { version: "0.0.0", revision: "test", nodeVersion: process.version },
    uid: process.getuid?.(),
    readTextFile,
    createToken: () => "made-up-token-of-the-test",
    progress: () => undefined,
    onStarted(started) {
      tell({ kind: "started", port: started.port });
      void write(started);
    },
  },
  stop.signal,
);
