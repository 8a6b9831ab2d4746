// The program in the box: starts a real node, and then either runs the test files that are named, or keeps the node until
// the box ends.
//
//   node box-main.ts <options as JSON> [test file]...

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { kubeconfig } from "../cluster/credentials.ts";
import type { Cluster } from "../cluster.ts";
import { clusterVariable } from "../cluster-under-test.ts";
import { equipNode } from "./equipped-node.ts";
import { type RealNodeOptions, startRealNode } from "./real-node.ts";
import { relay } from "./relay.ts";
import { provideVolumes } from "./volumes.ts";

export interface BoxMainOptions extends RealNodeOptions {
  /** For a person outside of the box: connections to the socket reach the API server. */
  readonly outside?: {
    readonly socket: string;
    /** Where the outside relays from. */
    readonly serverUrl: string;
    readonly kubeconfigPath: string;
    readonly helmDir: string;
  };
}

const [options = "{}", ...files] = process.argv.slice(2);
const report = (line: string) => console.error(line);

try {
  const parsed = JSON.parse(options) as BoxMainOptions;
  const begun = performance.now();
  const cluster = await startRealNode(parsed, new AbortController().signal);
  report(`node: Ready after ${((performance.now() - begun) / 1000).toFixed(1)} s`);
  if (parsed.outside !== undefined) {
    await provideVolumes(cluster, join(dirname(cluster.dir), "volumes"));
    await serveOutside(cluster, parsed.outside);
  }
  process.exit(files.length > 0 ? await runTests(cluster) : await forever());
} catch (error) {
  report(`node: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}

async function runTests(cluster: Cluster): Promise<number> {
  const factsPath = await equipNode(cluster);
  // What reads TypeScript here reads it there.
  const args = [...process.execArgv, "--test", "--test-concurrency=1", "--test-reporter=spec", ...files];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, [clusterVariable]: factsPath },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = await once(child, "close");
  return code ?? 1;
}

async function serveOutside(
  cluster: Cluster,
  outside: NonNullable<BoxMainOptions["outside"]>,
): Promise<void> {
  const { hostname, port } = new URL(cluster.serverUrl);
  const server = createServer((incoming) => relay(incoming, connect(Number(port), hostname)));
  server.listen(outside.socket);
  await once(server, "listening");
  const text = kubeconfig("admin", { token: cluster.adminToken }, outside.serverUrl, cluster.ca);
  await writeFile(outside.kubeconfigPath, text, { mode: 0o600 });
  console.log(`export KUBECONFIG=${outside.kubeconfigPath}`);
  console.log(`export PATH=${cluster.binariesDir}:${outside.helmDir}:$PATH`);
  report("cluster: type these two lines in another shell; they have kubectl and helm");
  report(
    "cluster: pods can use the images of docs/quickstart.md, with repository=registry.example/krane; there is no registry",
  );
  report("cluster: Ctrl-C takes it away");
}

function forever(): Promise<number> {
  return new Promise(() => setInterval(() => undefined, 2 ** 30));
}
