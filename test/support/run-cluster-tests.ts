// Runs test/cluster against a real control plane, or says loudly why not. What mostly waits for Kubernetes,
// in test/cluster/waiting, has a second one beside it.
//
// Test files may be named as arguments. A machine without Go or ready binaries
// passes without these tests; a CI machine that has Go or was given binaries does
// not, because there a skip would hide that they stopped running.

import { spawn } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { resolveKubeBinaries } from "../../tools/kube-binaries.ts";
import { untilInterrupted } from "./cluster/interruption.ts";
import { startCluster } from "./cluster.ts";
import { clusterVariable } from "./cluster-under-test.ts";

const testsDir = fileURLToPath(new URL("../cluster", import.meta.url));
const report = (line: string) => console.error(line);
const interrupted = untilInterrupted();

try {
  const binaries = await resolveKubeBinaries(process.env, { report }, interrupted);
  if (binaries.kind === "ready") {
    const { dir } = binaries;
    const codes = await Promise.all((await lanes()).map((lane) => runOnCluster(dir, lane)));
    process.exitCode = Math.max(...codes);
  } else {
    const asked = binaries.goPresent || process.env["KUBEBUILDER_ASSETS"] !== undefined;
    const fatal = process.env["CI"] === "true" && asked;
    report(`CLUSTER TESTS ${fatal ? "FAILED, not run" : "SKIPPED"}: ${binaries.what}`);
    process.exitCode = fatal ? 1 : 0;
  }
} catch (error) {
  if (!interrupted.aborted) {
    report(`cluster tests: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

interface Lane {
  readonly name: string;
  readonly files: readonly string[];
  /** Where its tests are told about. */
  readonly output: "inherit" | "pipe";
}

/** Two lines of tests at once would be hard to read, so those of a second lane are told at its end. */
async function lanes(): Promise<readonly Lane[]> {
  const named = process.argv.slice(2);
  if (named.length > 0) return [{ name: "named", files: named, output: "inherit" }];
  return [
    { name: "tests", files: await testFiles(testsDir), output: "inherit" },
    { name: "waiting", files: await testFiles(join(testsDir, "waiting")), output: "pipe" },
  ];
}

async function testFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => name.endsWith(".test.ts"))
    .sort()
    .map((name) => relative(process.cwd(), join(folder, name)));
}

async function runOnCluster(binariesDir: string, { name, files, output }: Lane): Promise<number> {
  const begun = performance.now();
  const cluster = await startCluster({ binariesDir }, interrupted);
  try {
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    report(`cluster tests (${name}): control plane ready after ${seconds} s`);
    const { kubectl: _, stop: __, ...facts } = cluster;
    const factsPath = join(cluster.dir, "facts.json");
    const resultsPath = join(cluster.dir, "results.tap");
    await writeFile(factsPath, JSON.stringify(facts), { mode: 0o600 });
    const code = await runTests(files, output, factsPath, resultsPath);
    const count = countTests(await readFile(resultsPath, "utf8"));
    report(`cluster tests (${name}): ${count} run against a real Kubernetes`);
    // Zero tests means that the files were not found, not that they passed.
    return count === 0 ? 1 : code;
  } finally {
    await cluster.stop();
  }
}

function runTests(
  files: readonly string[],
  output: Lane["output"],
  factsPath: string,
  resultsPath: string,
): Promise<number> {
  const args = [
    // What reads TypeScript here reads it there.
    ...process.execArgv,
    "--test",
    "--test-concurrency=1",
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    "--test-reporter=tap",
    `--test-reporter-destination=${resultsPath}`,
    ...files,
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, [clusterVariable]: factsPath },
      stdio: ["ignore", output, output],
      signal: interrupted,
    });
    let told = "";
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        told += text;
      });
    child.once("error", reject);
    child.once("close", (code) => {
      process.stdout.write(told);
      resolve(code ?? 1);
    });
  });
}

/** Of the summary at the end: all tests without the skipped ones. */
function countTests(tap: string): number {
  const of = (name: string) => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(tap)?.[1] ?? 0);
  return of("tests") - of("skipped");
}
