import assert from "node:assert/strict";
import { test } from "node:test";
import { exitCodeOfSignal, exitCodes } from "../../src/cli/exit-codes.ts";
import { createHealth } from "../../src/http/health.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { readProjectFile } from "../support/project-files.ts";

const page = readProjectFile("docs/running.md");

test("the exit codes on the page are those of the program", () => {
  const table = page.split("## Exit codes")[1]?.split("\n## ")[0] ?? "";
  const documented = [...table.matchAll(/^\| ([\d, ]+) \|/gm)].flatMap(([, codes = ""]) =>
    codes.split(", ").map(Number),
  );
  const real = [...Object.values(exitCodes), exitCodeOfSignal("SIGINT"), exitCodeOfSignal("SIGTERM")];
  assert.deepEqual(documented.sort(), [...real].sort());
});

test("the health paths on the page are those that are served", () => {
  const documented = [...page.matchAll(/^\| `(\/health\/[a-z]+)`/gm)].map(([, path]) => path);
  const served = [...createHealth(new Map(), { clock: new FakeClock() }).routes().keys()];
  assert.deepEqual(documented.sort(), served.sort());
});
