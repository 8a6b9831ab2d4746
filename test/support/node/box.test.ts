// Nothing of a box outlives the process that started it, and nothing in it changes the machine.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { eventually } from "../eventually.ts";
import { descendants, stillAlive } from "../process-table.ts";
import { runInBox } from "./box.ts";
import { cgroupsOf, exists, traces } from "./box-traces.ts";
import { inspectMachine } from "./machine.ts";

const machine = await inspectMachine();
const skip = machine.kind === "able" ? false : machine.what;
const never = new AbortController().signal;
const starter = fileURLToPath(new URL("./box-starter.ts", import.meta.url));

/** What a node does in its box, without a node. The last line tells the test that all of it is there. */
const busy = `
for hierarchy in /sys/fs/cgroup/*/"$KRANE_BOX_CGROUP" /sys/fs/cgroup/"$KRANE_BOX_CGROUP"; do
  [ -e "$hierarchy" ] || continue
  mkdir -p "$hierarchy/kubepods/pod1"
  sleep 600 & echo $! > "$hierarchy/kubepods/pod1/cgroup.procs" || true
done
ip link add veth1 type veth peer name veth2
mkdir -p /run/volume && mount -t tmpfs tmpfs /run/volume
setsid sleep 600 &
touch /var/lib/krane-box-was-here "$1/begun"
wait
`;

async function temporaryFolder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "krane-box-test-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A process that runs the busy program in a box whose folder is in `dir`. */
function startBox(t: TestContext, dir: string): ChildProcess {
  const child = spawn(process.execPath, [...process.execArgv, starter, busy, dir], {
    env: { ...process.env, TMPDIR: dir },
    stdio: "ignore",
  });
  t.after(() => child.kill("SIGKILL"));
  return child;
}

test("a program in a box sees an empty network and its own processes, and its result is returned", {
  skip,
}, async () => {
  const command = (script: string) => () => ({ file: "bash", args: ["-c", script], env: process.env });
  const alone =
    '[ "$(ip -o link | wc -l)" = 2 ] && [ "$(ls /proc | grep -c "^[0-9]")" -lt 8 ] && [ "$(hostname)" = krane-node ]';
  assert.equal(await runInBox(command(alone), never), true);
  assert.equal(await runInBox(command("exit 3"), never), false);
});

const killed: readonly (readonly [string, (starter: number, found: readonly number[]) => number])[] = [
  ["its starter", (pid) => pid],
  ["unshare", (_, found) => pidOf(found, "unshare")],
  ["the first process in it", (_, found) => pidOf(found, "bash")],
];

for (const [who, pidToKill] of killed) {
  test(`nothing is left of a box when ${who} is killed`, { skip }, async (t) => {
    const dir = await temporaryFolder(t);
    const before = await traces(dir);
    const child = startBox(t, dir);
    await eventually("the program is busy", async () =>
      assert.ok(await exists(join(dir, "begun")), "not yet"),
    );
    const { folders } = await traces(dir);
    assert.equal(folders.length, 1);
    assert.ok((await cgroupsOf(folders)).length > 0, "it has control groups");
    const processes = descendants(child.pid ?? 0);
    assert.ok(processes.length > 5, "leash, janitor, unshare, bash and what they started");
    process.kill(pidToKill(child.pid ?? 0, processes), "SIGKILL");
    await eventually("nothing is left", async () => {
      assert.deepEqual(stillAlive(processes), []);
      assert.deepEqual((await traces(dir)).folders, []);
      assert.deepEqual(await cgroupsOf(folders), []);
    });
    await rm(join(dir, "begun"));
    assert.deepEqual(await traces(dir), before);
  });
}

test("nothing is left of a box that is killed at any moment of its start", { skip }, async (t) => {
  const dir = await temporaryFolder(t);
  const before = await traces(dir);
  for (let round = 0; round < 8; round += 1) {
    const child = startBox(t, dir);
    const folders = await eventually("its folder is there", async () => {
      const found = (await traces(dir)).folders;
      assert.equal(found.length, 1);
      return found;
    });
    // A few more processes every round: the start is as far as it got.
    await eventually("it went on", () => assert.ok(descendants(child.pid ?? 0).length >= round, "not yet"));
    const processes = descendants(child.pid ?? 0);
    child.kill("SIGKILL");
    await once(child, "exit");
    await eventually("nothing is left", async () => {
      assert.deepEqual(stillAlive(processes), []);
      assert.deepEqual((await traces(dir)).folders, []);
      assert.deepEqual(await cgroupsOf(folders), []);
    });
    await rm(join(dir, "begun"), { force: true });
  }
  assert.deepEqual(await traces(dir), before);
});

function pidOf(pids: readonly number[], program: string): number {
  const isIt = (pid: number) => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === program;
  return pids.find(isIt) ?? assert.fail(`no ${program}`);
}
