// A bug that nothing catches ends the process with 70 and a stack on standard error.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

for (const [what, statement] of [
  ["an exception that nobody catches", `queueMicrotask(() => { throw new Error("planted") })`],
  ["a rejection that nobody handles", `void Promise.reject(new Error("planted"))`],
] as const) {
  test(`${what} exits with 70 and says so`, () => {
    const script = `
      import { createProcessIo } from "./src/cli/process-io.ts";
      createProcessIo(process);
      ${statement};
      setTimeout(() => {}, 60_000);`;
    const args = ["--import", "tsx", "--input-type=module", "--eval", script];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
    assert.equal(status, 70, stderr);
    assert.equal(stdout, "");
    assert.match(stderr, /^krane: this is a bug in krane, please report it: Error: planted\n\s+at /);
  });
}
