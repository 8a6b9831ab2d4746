// `make cluster node=real`: a control plane with a real node for a person to look into, until Ctrl-C. It lives in a box, and
// a port of this machine's loopback interface leads to its API server.

import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { untilInterrupted } from "./cluster/interruption.ts";
import { runInBox } from "./node/box.ts";
import type { BoxMainOptions } from "./node/box-main.ts";
import { prepareNode } from "./node/prepared-node.ts";
import { relay } from "./node/relay.ts";

const boxMain = fileURLToPath(new URL("./node/box-main.ts", import.meta.url));
const interrupted = untilInterrupted();
const report = (line: string) => console.error(line);
const sockets = { path: "" };
const server = createServer((incoming) => relay(incoming, connect(sockets.path)));

try {
  const prepared = await prepareNode(process.env, report, interrupted);
  if (prepared.kind === "missing") throw new Error(prepared.what);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  report("cluster: starting a real node ...");
  const ended = await runInBox((dir) => {
    sockets.path = join(dir, "api.sock");
    const serverUrl = `https://127.0.0.1:${port}`;
    const kubeconfigPath = join(dir, "kubeconfig");
    const options: BoxMainOptions = {
      ...prepared.options,
      outside: { socket: sockets.path, serverUrl, kubeconfigPath, helmDir: prepared.helmDir },
    };
    const args = [...process.execArgv, boxMain, JSON.stringify(options)];
    return { file: process.execPath, args, env: process.env };
  }, interrupted);
  if (!ended && !interrupted.aborted) process.exitCode = 1;
} catch (error) {
  if (!interrupted.aborted) {
    report(`cluster: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
} finally {
  server.close();
}
