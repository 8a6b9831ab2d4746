// `make test`: every test, in the order in which a person wants to hear of a failure.
// The unit tests run twice, on this Node and on the one that production uses; tests of
// whole processes and of the cluster once. Stops at the first suite that is red.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

function testFiles(folder: string, except: readonly string[] = []): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter(
      (name) =>
        name.endsWith(".test.ts") &&
        !name.includes("node_modules") &&
        !except.some((prefix) => name.startsWith(prefix)),
    )
    .sort();
}

function findNode24(): string | undefined {
  const folder = "tools/node24/node_modules";
  if (!existsSync(folder)) return undefined;
  const packages = readdirSync(folder).filter((name) => name.startsWith("node-"));
  return packages.map((name) => join(folder, name, "bin/node")).find((path) => existsSync(path));
}

function run(title: string, node: string, args: readonly string[]): void {
  console.log(`\n== ${title}`);
  const { status, signal } = spawnSync(node, args, { stdio: "inherit" });
  if (status === 0) return;
  console.error(`\n${title}: failed${signal ? ` (${signal})` : ""}`);
  process.exit(1);
}

const unit = testFiles("src");
const whole = [...testFiles("tools"), ...testFiles("test", ["test/cluster/"])];
// Node leaves one core free, which on a machine with two halves the speed.
const concurrency = `--test-concurrency=${availableParallelism()}`;
const runner = ["--import", "tsx", "--test", concurrency, "--test-reporter=spec"];

run(`unit tests, Node ${process.versions.node} (${unit.length} files)`, process.execPath, [
  ...runner,
  ...unit,
]);

const node24 = findNode24();
if (node24) run(`unit tests, Node 24 (${unit.length} files)`, node24, [...runner, ...unit]);
else if (process.env["CI"] === "true") throw new Error("Node 24 is not installed: run `make .cache/node24`");
else console.error("SKIPPED: unit tests on Node 24: no npm package of it for this platform");

run(`tests of the whole (${whole.length} files)`, process.execPath, [...runner, ...whole]);
run("cluster tests", process.execPath, ["--import", "tsx", "test/support/run-cluster-tests.ts"]);
