// What a started agent has not loaded and not compiled: each would cost its memory for as long as it runs.
import assert from "node:assert/strict";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { fetchHttp1 } from "../support/http-clients.ts";
import { buildKrane, startKrane, writeConfig } from "../support/krane-process.ts";
import { findNode24 } from "../support/node24.ts";
import { type ServedCluster, serveCluster } from "../support/served-cluster.ts";

let program = "";
let removeBundle: () => Promise<void> = async () => undefined;
let cluster: ServedCluster;

before(async () => {
  cluster = await serveCluster();
  ({ program, remove: removeBundle } = await buildKrane());
});
after(async () => {
  await removeBundle();
  await cluster.stop();
});

// Runs in the agent before its own code. The parser is asked about at the end, because V8 compiles it again after some requests.
const look = `
const v8 = require("node:v8");
v8.setFlagsFromString("--allow-natives-syntax");
const isOptimized = new Function("code", "return %IsTurboFanFunction(code)");
v8.setFlagsFromString("--no-allow-natives-syntax");
let parser;
const { Instance } = WebAssembly;
WebAssembly.Instance = function (...args) {
  const instance = new Instance(...args);
  parser = instance.exports.llhttp_execute ?? parser;
  return instance;
};
process.on("exit", () => {
  const fetch = process.moduleLoadList.includes("NativeModule internal/deps/undici/undici");
  console.error(JSON.stringify({ fetch, parser: parser && { isOptimized: isOptimized(parser) } }));
});
`;

async function seenIn(t: TestContext, node: string): Promise<unknown> {
  const folder = await mkdtemp(join(tmpdir(), "krane-look-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "look.cjs"), look);
  await writeFile(join(folder, "kubeconfig"), cluster.kubeconfig);
  await symlink(node, join(folder, "node"));
  const config = await writeConfig(t);
  const args = ["agent", "--config", config.path, "--kubernetes-kubeconfig", join(folder, "kubeconfig")];
  const env = {
    PATH: `${folder}:${process.env["PATH"]}`,
    NODE_OPTIONS: `--require=${join(folder, "look.cjs")}`,
  };
  const { child, exit } = startKrane(t, program, args, env);
  const url = `http://127.0.0.1:${config.rpcPort}/health/startup`;
  await eventually("krane has started", async () => assert.equal((await fetchHttp1(url)).status, 200));
  child.kill("SIGTERM");
  const { code, stderr } = await exit;
  assert.equal(code, 0, stderr);
  return JSON.parse(stderr);
}

async function assertLean(t: TestContext, node: string): Promise<void> {
  assert.deepEqual(await seenIn(t, node), { fetch: false, parser: { isOptimized: false } });
}

test("an agent has no fetch, and its HTTP parser is compiled once", (t) => assertLean(t, process.execPath));

test("and so it is on Node 24", async (t) => {
  const node = findNode24();
  if (node === undefined) return t.skip("Node 24 is not installed");
  await assertLean(t, node);
});
