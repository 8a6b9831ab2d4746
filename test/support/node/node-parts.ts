// Lets tests stop and start parts of the node, or cut its power. The process that started the node serves this on a socket
// in its folder.

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { boxVariables } from "./box.ts";
import { endEverything, type NodeProcesses } from "./power-cut.ts";
import type { SupervisedPart } from "./supervised-part.ts";

export type NodePart = "containerd" | "kubelet" | "kube-proxy";

type Order = `${"stop" | "start"} ${NodePart}` | "cut power" | "start all";

const socketName = "parts.sock";

export interface ServedNode extends NodeProcesses {
  readonly dir: string;
  readonly parts: Readonly<Record<NodePart, SupervisedPart>>;
}

export async function serveNodeParts({ dir, parts, ...processes }: ServedNode): Promise<void> {
  const server = createServer((socket) => {
    socket.once("data", (order) => {
      obey(String(order) as Order).then(
        () => socket.end("done"),
        (error: unknown) => socket.end(String(error)),
      );
    });
  });
  server.unref();
  server.listen(join(dir, socketName));
  await once(server, "listening");

  async function obey(order: Order): Promise<void> {
    if (order === "start all") {
      for (const part of Object.values(parts)) part.start();
      return;
    }
    if (order === "cut power") {
      const stopped = Object.values(parts).map((part) => part.stop());
      await endEverything(processes);
      await Promise.all(stopped);
      return;
    }
    const [verb, name] = order.split(" ") as ["stop" | "start", NodePart];
    await parts[name][verb]();
  }
}

/** Stops or starts a part of the node, or all of it; from a test file on the node. */
export async function orderNode(order: Order): Promise<void> {
  const socket = connect(join(process.env[boxVariables.dir] ?? "", "node", socketName));
  socket.write(order);
  const answer = await text(socket);
  if (answer !== "done") throw new Error(`${order}: ${answer}`);
}
