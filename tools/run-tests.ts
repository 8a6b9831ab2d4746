// `make test`: runs every test, ordered so that the most useful failures show first. The unit tests run twice, on
// this Node and on the one used in production; tests of whole processes and of the cluster run once, side by side, and
// those of the browser and the real node after them. Stops at the first suite that fails.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { resolveKubeBinaries } from "./kube-binaries.ts";

// These take longest, and mostly wait. They start first, so that none of them runs alone at the end.
const longest = [
  "test/integration/agent/killed.test.ts",
  "test/integration/agent/without-cilium.test.ts",
  "test/simulation/absence.test.ts",
  "test/simulation/control-plane-outages.test.ts",
  "test/integration/why/held-deletion.test.ts",
  "test/integration/why/why.test.ts",
  "test/integration/dev/actions.test.ts",
  "test/integration/agent/first-light.test.ts",
  "test/integration/why/older-pods.test.ts",
  "test/simulation/failure-isolation.test.ts",
  "test/store/store.test.ts",
  "test/integration/scheduler/roads.test.ts",
];

// Tests of a whole package; those beside its sources are unit tests.
const packageTests = ["packages/kube-apiserver/test"];

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

function longestFirst(files: readonly string[]): string[] {
  const gone = longest.filter((name) => !files.includes(name));
  if (gone.length > 0) throw new Error(`tools/run-tests.ts names tests that are gone: ${gone.join(", ")}`);
  return [...longest, ...files.filter((name) => !longest.includes(name))];
}

function findNode24(): string | undefined {
  const folder = "tools/node24/node_modules";
  if (!existsSync(folder)) return undefined;
  const packages = readdirSync(folder).filter((name) => name.startsWith("node-"));
  return packages.map((name) => join(folder, name, "bin/node")).find((path) => existsSync(path));
}

interface Suite {
  readonly title: string;
  readonly node: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The output of two suites at once is hard to read, so the second one's is kept until this is over. */
  readonly silentDuring?: Promise<unknown>;
}

/** Whether it passed. */
async function run({ title, node, args, env, silentDuring }: Suite): Promise<boolean> {
  const output = silentDuring === undefined ? "inherit" : "pipe";
  if (output === "inherit") console.log(`\n== ${title}`);
  const child = spawn(node, args, {
    env: { ...process.env, ...env },
    stdio: ["ignore", output, output],
  });
  const ended = once(child, "close");
  if (output === "pipe") {
    const kept: Buffer[] = [];
    let tell = (text: Buffer): unknown => kept.push(text);
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text: Buffer) => tell(text));
    await silentDuring;
    console.log(`\n== ${title}`);
    tell = (text) => process.stdout.write(text);
    for (const text of kept) tell(text);
  }
  const [status, signal] = await ended;
  if (status === 0) return true;
  console.error(`\n${title}: failed${signal ? ` (${signal})` : ""}`);
  return false;
}

async function mustRun(suite: Suite): Promise<void> {
  if (!(await run(suite))) process.exit(1);
}

// Ctrl-C in a terminal reaches the suites too, and they clean up: wait for their end.
process.on("SIGINT", () => undefined);

/** Its hashes may depend on the version of Node. */
const sameSeed = "test/sim/same-seed.test.ts";
const unit = [...testFiles("src"), ...testFiles("packages", packageTests), sameSeed];
const whole = longestFirst([
  ...testFiles("tools"),
  ...packageTests.flatMap((folder) => testFiles(folder)),
  ...testFiles("test", ["test/cluster/", "test/node/", "test/browser/", sameSeed]),
]);
const cores = availableParallelism();
const node24 = findNode24();
let typeScript = ["--import", "tsx"];
if (node24) {
  const args = ["--disable-warning=ExperimentalWarning", "tools/strip-types.ts"];
  await mustRun({ title: "types stripped", node: node24, args });
  typeScript = ["--import", resolve(".cache/stripped/tools/stripped-modules.mjs")];
}

await mustRun({
  title: `unit tests, Node ${process.versions.node} (${unit.length} files)`,
  node: process.execPath,
  args: [...typeScript, "tools/test-suite.ts", `${cores}`, ...unit],
});

if (node24)
  await mustRun({
    title: `unit tests, Node 24 (${unit.length} files)`,
    node: node24,
    args: ["tools/test-suite.ts", `${cores}`, ...unit],
    // Its processes load mostly the same modules, and share the compiled code.
    env: { NODE_COMPILE_CACHE: resolve(".cache/compiled") },
  });
else if (process.env["CI"] === "true") throw new Error("Node 24 is not installed: run `make .cache/node24`");
else console.error("SKIPPED: unit tests on Node 24: no npm package of it for this platform");

// Building Kubernetes takes every core for minutes, which would make the tests beside it fail.
await resolveKubeBinaries(process.env, { report: console.error }, new AbortController().signal);
const env = { KRANE_TEST_PROGRAM: resolve("bin/krane") };
const wholeGreen = run({
  title: `tests of the whole (${whole.length} files)`,
  node: process.execPath,
  args: [...typeScript, "tools/test-suite.ts", `${cores + 1}`, ...whole],
  env,
});
const clusterGreen = run({
  title: "cluster tests",
  node: process.execPath,
  args: [...typeScript, "test/support/run-cluster-tests.ts"],
  env,
  silentDuring: wholeGreen,
});
// Both are awaited, so that none goes on after the end.
const greens = [await wholeGreen, await clusterGreen];
if (greens.includes(false)) process.exit(1);

await mustRun({
  title: "browser tests",
  node: process.execPath,
  args: [...typeScript, "test/support/run-browser-tests.ts"],
  env,
});

// Alone, because a real node and its pods take all cores.
const isLong = process.env["KRANE_TEST_LONG"] === "1";
await mustRun({
  title: "node tests",
  node: process.execPath,
  args: [...typeScript, "test/support/run-node-tests.ts", ...(isLong ? [] : ["--sample"])],
  env,
});
