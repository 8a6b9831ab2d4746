// Whether the contract would notice: mistakes are made in a copy of the embedded server, one at a
// time, and each must break the case that is named for it.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { contractCases } from "./contract-cases.ts";
import { mutations } from "./mutations.ts";

// A case that no mutation touches. It shows that the copy still runs: a server that does not even
// start would break every case, and prove nothing.
const control = "get: an absent object is answered with 404 and its name, kind and reason";
const packageDir = fileURLToPath(new URL("../..", import.meta.url));
const projectDir = join(packageDir, "../..");
const sampleEvery = 13;
const childTimeoutMs = 120_000;

const sampled = mutations.filter(
  (_, index) => process.env["KRANE_TEST_LONG"] === "1" || index % sampleEvery === 0,
);
const copy = copyTree();
after(() => rmSync(copy, { recursive: true, force: true }));

function copyTree(): string {
  const dir = mkdtempSync(join(tmpdir(), "kube-apiserver-mutations-"));
  for (const part of ["src", "test", "package.json"]) {
    cpSync(join(packageDir, part), join(dir, part), { recursive: true });
  }
  symlinkSync(join(projectDir, "node_modules"), join(dir, "node_modules"));
  return dir;
}

/** Case name -> "kept" or what broke. */
function runCases(...names: readonly string[]): Record<string, string> {
  const script = join(copy, "test/contract/single-case.ts");
  const { stdout, stderr, status } = spawnSync(process.execPath, ["--import", "tsx", script, ...names], {
    cwd: copy,
    encoding: "utf8",
    timeout: childTimeoutMs,
  });
  assert.equal(status, 0, `the mutated server does not run: ${stderr}`);
  return JSON.parse(stdout);
}

describe("mutations of the embedded server", { concurrency: 1 }, () => {
  test("each still has its place in the source and a case that exists", () => {
    const names = new Set(contractCases.map((one) => one.name));
    const lost = mutations.flatMap(({ what, file, find, caughtBy }) => {
      const places = readFileSync(join(packageDir, "src", file), "utf8").split(find).length - 1;
      if (places !== 1) return [`${what}: ${places} places in ${file}`];
      return names.has(caughtBy) ? [] : [`${what}: there is no case "${caughtBy}"`];
    });
    assert.deepEqual(lost, []);
  });

  test("there are at least 20", () => assert.ok(mutations.length >= 20));

  for (const { what, file, find, replace, caughtBy } of sampled) {
    test(`caught: ${what}`, () => {
      const path = join(copy, "src", file);
      const source = readFileSync(path, "utf8");
      assert.ok(source.includes(find), `${file} has changed`);
      writeFileSync(
        path,
        source.replace(find, () => replace),
      );
      try {
        const results = runCases(control, caughtBy);
        assert.equal(results[control], "kept", "this mutation breaks everything");
        assert.match(results[caughtBy] ?? "", /^broken/, `"${caughtBy}" does not notice it`);
      } finally {
        writeFileSync(path, source);
      }
    });
  }
});
