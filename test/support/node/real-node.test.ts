// Nothing of a real node with krane and its pods outlives the runner of the tests, whenever that is killed. It takes minutes, so
// only KRANE_TEST_LONG=1 runs it; KRANE_TEST_SEED repeats the moments.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createSeededRandom, uniform } from "../../../src/concurrency/random.ts";
import { eventually } from "../eventually.ts";
import { descendants, stillAlive } from "../process-table.ts";
import { cgroupsOf, traces } from "./box-traces.ts";
import { inspectMachine } from "./machine.ts";

const machine = await inspectMachine();
const isLong = process.env["KRANE_TEST_LONG"] === "1";
const skip = machine.kind === "able" ? !isLong && "only with KRANE_TEST_LONG=1" : machine.what;
const seed = Number(process.env["KRANE_TEST_SEED"] ?? Math.floor(Date.now() / 1_000));
const random = createSeededRandom(seed);
const runner = fileURLToPath(new URL("../run-node-tests.ts", import.meta.url));
const kills = 5;
/** The node is Ready after about 15 seconds, and krane after about 30. */
const latestMs = 45_000;

test("nothing is left of a node whose runner is killed at any moment", { skip }, async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "krane-killed-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  t.diagnostic(`seed ${seed}`);
  const before = await traces(dir);
  for (let round = 0; round < kills; round += 1) {
    const child = spawn(process.execPath, [...process.execArgv, runner, "test/node/install.test.ts"], {
      env: { ...process.env, TMPDIR: dir },
      stdio: "ignore",
    });
    t.after(() => child.kill("SIGKILL"));
    const folders = await eventually(
      "the box has its folder",
      async () => {
        const found = (await traces(dir)).folders;
        assert.equal(found.length, 1);
        return found;
      },
      { deadlineMs: 600_000 },
    );
    const momentMs = uniform(random, 0, latestMs);
    await delay(momentMs);
    const processes = descendants(child.pid ?? 0);
    t.diagnostic(`killed after ${Math.round(momentMs)} ms, with ${processes.length} processes`);
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    await eventually(
      "nothing is left",
      async () => {
        assert.deepEqual(stillAlive(processes), []);
        assert.deepEqual((await traces(dir)).folders, []);
        assert.deepEqual(await cgroupsOf(folders), []);
      },
      { deadlineMs: 60_000 },
    );
  }
  assert.deepEqual(await traces(dir), before);
});
