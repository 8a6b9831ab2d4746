// Nothing of a cluster outlives the process that started it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Kennel, type Leashed, openKennel } from "../support/cluster/leash.ts";
import { startCluster } from "../support/cluster.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";
import { descendants, stillAlive } from "../support/process-table.ts";

const runCluster = fileURLToPath(new URL("../support/run-cluster.ts", import.meta.url));

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function temporaryFolder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "krane-leash-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Runs a line of JavaScript in a leashed process that first makes the file `begun`. */
async function startProgram(kennel: Kennel, dir: string, name: string, code: string): Promise<Leashed> {
  const marker = join(dir, `${name}-begun`);
  const begin = `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "");`;
  const leashed = kennel.start({
    name,
    file: process.execPath,
    args: ["-e", `${code};${begin}`],
    cwd: dir,
    env: process.env,
    logPath: join(dir, `${name}.log`),
  });
  await eventually(`${name} runs`, async () => assert.ok(await exists(marker), "not yet"));
  return leashed;
}

const forever = "setInterval(() => undefined, 1e6)";

test("closing a kennel ends even what ignores TERM, and then removes the folder", async (t) => {
  const dir = await temporaryFolder(t);
  const before = descendants(process.pid);
  const kennel = openKennel(dir);
  await startProgram(kennel, dir, "stubborn", `process.on("SIGTERM", () => undefined);${forever}`);
  await startProgram(kennel, dir, "polite", forever);
  const started = descendants(process.pid).filter((pid) => !before.includes(pid));
  assert.ok(started.length >= 5, "a janitor, two leashes and two programs");
  await kennel.close();
  assert.equal(await exists(dir), false);
  await eventually("all processes are gone", () => assert.deepEqual(stillAlive(started), []));
});

test("a program that ends by itself is reported with its exit code, and its log stays", async (t) => {
  const dir = await temporaryFolder(t);
  const kennel = openKennel(dir);
  t.after(() => kennel.close());
  const leashed = await startProgram(kennel, dir, "brief", "setImmediate(() => process.exit(7))");
  assert.equal(await leashed.ended, "exit code 7");
  assert.ok(await exists(leashed.logPath));
});

test("releasing one program leaves the others running", async (t) => {
  const dir = await temporaryFolder(t);
  const kennel = openKennel(dir);
  t.after(() => kennel.close());
  const first = await startProgram(kennel, dir, "first", forever);
  const shells = descendants(process.pid);
  await startProgram(kennel, dir, "second", forever);
  const second = descendants(process.pid).filter((pid) => !shells.includes(pid));
  await first.release();
  assert.deepEqual(stillAlive(second), second);
});

test("a component that cannot start is named, with the end of its log, and nothing stays", async (t) => {
  const binariesDir = await temporaryFolder(t);
  const real = clusterUnderTest().binariesDir;
  for (const name of await readdir(real)) {
    if (name !== "kube-apiserver") {
      await symlink(join(real, name), join(binariesDir, name));
    }
  }
  const broken = join(binariesDir, "kube-apiserver");
  await writeFile(broken, '#!/bin/sh\necho the disk is on fire\npwd > "$(dirname "$0")/place"\nexit 3\n');
  await chmod(broken, 0o755);
  await assert.rejects(startCluster({ binariesDir }, new AbortController().signal), (error: Error) => {
    assert.match(error.message, /^kube-apiserver ended early \(exit code 3\)/);
    assert.match(error.message, /the disk is on fire/);
    return true;
  });
  const place = (await readFile(join(binariesDir, "place"), "utf8")).trim();
  assert.equal(await exists(place), false);
});

test("a whole cluster is gone, folder included, when its starter is killed", async (t) => {
  const child = spawn(process.execPath, ["--import=tsx", runCluster], {
    env: { ...process.env, KUBEBUILDER_ASSETS: clusterUnderTest().binariesDir },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  let kubeconfig: string | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    kubeconfig = /^export KUBECONFIG=(.*)$/.exec(line)?.[1];
    if (kubeconfig !== undefined) {
      break;
    }
  }
  assert.ok(kubeconfig !== undefined && child.pid !== undefined, "the cluster has started");
  const dir = dirname(kubeconfig);
  const processes = descendants(child.pid);
  assert.ok(processes.length >= 11, "a janitor, five leashes and five components");
  assert.ok(await exists(dir));

  child.kill("SIGKILL");

  await eventually("every process of the cluster is gone", () => assert.deepEqual(stillAlive(processes), []));
  await eventually("its folder is removed", async () => assert.equal(await exists(dir), false));
});
