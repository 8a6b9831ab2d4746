// A region of `krane dev` in the process of the test: pods that are ready at once, ports that are free.
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { chooseFreePorts, removeFile, writeTextFile } from "../../../src/cli/dev-command.ts";
import { readTextFile } from "../../../src/cli/process/text-file.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createSeededRandom } from "../../../src/concurrency/random.ts";
import {
  type DevDeps,
  type DevOptions,
  type DevPorts,
  type DevRegion,
  startDevRegion,
} from "../../../src/dev/dev-region.ts";
import { defaultLifecycle, LifecycleStack } from "../../../src/runtime/lifecycle.ts";
import { createQuietLog } from "../../support/quiet-log.ts";

export const quickPods = { pullMs: 0, startMs: 0, readyMs: 0, stopMs: 0 };
export const never = new AbortController().signal;

export function devDeps(): DevDeps {
  return {
    clock: createSystemClock(),
    random: createSeededRandom(1),
    log: createQuietLog(),
    build: { version: "0.0.0", revision: "r", nodeVersion: process.version },
    env: {},
    readTextFile,
    runCommand: () => Promise.reject(new Error("no command is needed")),
    createToken: () => randomBytes(8).toString("hex"),
    writeTextFile,
    removeFile,
  };
}

export async function freeDevPorts(): Promise<DevPorts> {
  return chooseFreePorts({ kube: 0, control: 0, rpc: 0, metrics: 0 });
}

export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-dev-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Stopped with the test. */
export async function startedRegion(
  t: TestContext,
  overrides: Partial<DevOptions> = {},
  more: Partial<DevDeps> = {},
): Promise<DevRegion> {
  const kubeconfigPath = join(await temporaryFolder(t), "kubeconfig");
  const ports = await freeDevPorts();
  const cluster = { kind: "embedded", kubeconfigPath, behaviour: quickPods } as const;
  const deps = { ...devDeps(), ...more };
  const stack = new LifecycleStack(defaultLifecycle, deps);
  t.after(() => stack.stop());
  return startDevRegion({ ports, cluster, ...overrides }, deps, stack, never);
}
