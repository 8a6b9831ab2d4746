// Lets tests stop and start parts of the node. The process that started the node serves this on a socket in its folder.

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { boxVariables } from "./box.ts";

export interface NodeSwitch {
  stop(): Promise<void>;
  start(): void;
}

export type NodePart = "kubelet" | "kube-proxy";

type Order = `${"stop" | "start"} ${NodePart}`;

const socketName = "parts.sock";

export async function serveNodeParts(
  dir: string,
  parts: Readonly<Record<NodePart, NodeSwitch>>,
): Promise<void> {
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
    const [verb, name] = order.split(" ") as ["stop" | "start", NodePart];
    await parts[name][verb]();
  }
}

/** Stops or starts a part of the node; from a test file on the node. */
export async function orderNode(order: Order): Promise<void> {
  const socket = connect(join(process.env[boxVariables.dir] ?? "", "node", socketName));
  socket.write(order);
  const answer = await text(socket);
  if (answer !== "done") throw new Error(`${order}: ${answer}`);
}
