// How a process ends when something fails: a bug that nothing catches, output
// that cannot be written, a thread that never comes back.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** A process with its `io`, and a timer that keeps it alive unless it is ended. */
function runScript(statement: string, stdout: "pipe" | number = "pipe") {
  const script = `
    import { open } from "node:fs";
    import { createProcessIo } from "./src/cli/process/process-io.ts";
    const io = createProcessIo(process);
    setTimeout(() => {}, 600_000);
    ${statement}`;
  const args = ["--import", "tsx", "--input-type=module", "--eval", script];
  return spawnSync(process.execPath, args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", stdout, "pipe"],
    // Only spent by a test that fails.
    timeout: 60_000,
  });
}

test("what was written gets out before the process ends, whatever else still runs", () => {
  const { status, stdout, stderr } = runScript(`io.stdout.write("x".repeat(1_000_000)); io.end(0);`);
  assert.deepEqual([status, stdout.length, stderr], [0, 1_000_000, ""]);
});

test("output that could not be written makes a success a failure, and leaves a failure as it is", () => {
  const full = openSync("/dev/full", "w");
  for (const [code, expected] of [
    [0, 1],
    [78, 78],
  ] as const) {
    const { status, stderr } = runScript(`io.stdout.write("x"); io.end(${code});`, full);
    assert.equal(status, expected);
    assert.match(stderr, /^krane: standard output: .*ENOSPC.*\n$/);
  }
});

test("a pipe that never gets a writer, and a thread that is stuck in opening one, do not keep the process", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "krane-stuck-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const pipe = join(folder, "pipe");
  assert.equal(spawnSync("mkfifo", [pipe]).status, 0);
  const path = JSON.stringify(pipe);
  const read = runScript(`
    void io.readTextFile(${path}, new AbortController().signal);
    setImmediate(() => io.exit(143));`);
  assert.deepEqual([read.status, read.signal, read.stderr], [143, null, ""]);
  const stuck = runScript(`open(${path}, "r", () => {}); io.exit(143);`);
  assert.deepEqual([stuck.status, stuck.signal, stuck.stderr], [null, "SIGKILL", ""]);
});

for (const [what, statement] of [
  ["an exception that nobody catches", `queueMicrotask(() => { throw new Error("planted") })`],
  ["a rejection that nobody handles", `void Promise.reject(new Error("planted"))`],
] as const) {
  test(`${what} exits with 70 and says so`, () => {
    const { status, stdout, stderr } = runScript(statement);
    assert.equal(status, 70, stderr);
    assert.equal(stdout, "");
    assert.match(stderr, /^krane: this is a bug in krane, please report it: Error: planted\n\s+at /);
  });
}
