// `make test-node`: runs test/node on a real Kubernetes node, or says loudly why not. Test files may be named as
// arguments; `--sample`, for `make test`, leaves out those with `.long.` in their name. They share one node, except for those
// with `.own-node.`, which get one each. A machine that cannot run a node passes without these tests; a CI machine that
// can does not, because there a skip would hide that they stopped running.

import { readdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { untilInterrupted } from "./cluster/interruption.ts";
import { runInBox } from "./node/box.ts";
import { prepareNode } from "./node/prepared-node.ts";

const testsDir = fileURLToPath(new URL("../node", import.meta.url));
const boxMain = fileURLToPath(new URL("./node/box-main.ts", import.meta.url));
const report = (line: string) => console.error(line);
const interrupted = untilInterrupted();

try {
  const begun = performance.now();
  const prepared = await prepareNode(process.env, report, interrupted);
  if (prepared.kind === "ready") {
    report(`node tests: prepared in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
    for (const files of byNode(await testFiles())) {
      if (interrupted.aborted) break;
      const args = [...process.execArgv, boxMain, JSON.stringify(prepared.options), ...files];
      const green = await runInBox(() => ({ file: process.execPath, args, env: process.env }), interrupted);
      if (!green && !interrupted.aborted) process.exitCode = 1;
    }
  } else {
    const fatal = process.env["CI"] === "true" && prepared.ableMachine;
    report(`NODE TESTS ${fatal ? "FAILED, not run" : "SKIPPED"}: ${prepared.what}`);
    process.exitCode = fatal ? 1 : 0;
  }
} catch (error) {
  if (!interrupted.aborted) {
    report(`node tests: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}

async function testFiles(): Promise<readonly string[]> {
  const isSample = process.argv.includes("--sample");
  const named = process.argv.slice(2).filter((argument) => argument !== "--sample");
  if (named.length > 0) return named;
  const names = (await readdir(testsDir))
    .filter((name) => name.endsWith(".test.ts") && !(isSample && name.includes(".long.")))
    .sort();
  return names.map((name) => relative(process.cwd(), join(testsDir, name)));
}

function byNode(files: readonly string[]): readonly (readonly string[])[] {
  const alone = files.filter((file) => file.includes(".own-node."));
  const shared = files.filter((file) => !alone.includes(file));
  return [...(shared.length > 0 ? [shared] : []), ...alone.map((file) => [file])];
}
