// Lets tests stop and start parts of the node, or cut its power: the components and all containers end at once. The
// process that started the node serves this on a socket in the folder of the node.

import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { eventually } from "../eventually.ts";
import { boxVariables } from "./box.ts";
import { containerdSocket } from "./node-components.ts";

export interface NodeSwitch {
  stop(): Promise<void>;
  start(): void;
}

export type NodePart = "containerd" | "kubelet" | "kube-proxy";

type Order = `${"stop" | "start"} ${NodePart}` | "cut";

const socketName = "power.sock";

export async function servePower(
  dir: string,
  cgroup: string,
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
    const [verb, name] = order.split(" ");
    // A kubelet that finds no container runtime ends at once.
    if (order === "start kubelet")
      await eventually("containerd listens", () => once(connect(containerdSocket), "connect"));
    if (verb === "start") return parts[name as NodePart].start();
    if (verb === "stop") return parts[name as NodePart].stop();
    // First those that would start something again.
    await parts.kubelet.stop();
    await parts["kube-proxy"].stop();
    await parts.containerd.stop();
    for (const pid of await processesBelow(cgroup)) kill(pid);
  }
}

/** Stops or starts a part of the node, or cuts its power; from a test file on the node. */
export async function orderNode(order: Order): Promise<void> {
  const socket = connect(join(process.env[boxVariables.dir] ?? "", "node", socketName));
  socket.write(order);
  const answer = await text(socket);
  if (answer !== "done") throw new Error(`${order}: ${answer}`);
}

/** The processes of all containers, which are below the control group of the box, in whichever hierarchy. */
async function processesBelow(cgroup: string): Promise<ReadonlySet<number>> {
  const root = "/sys/fs/cgroup";
  const names = await readdir(root);
  const tops = [root, ...names.map((name) => join(root, name))].map((folder) => join(folder, cgroup));
  const pids = new Set<number>();
  for (const top of tops) {
    const below = await readdir(join(top, "kubepods"), { recursive: true }).catch(() => []);
    for (const name of below.filter((one) => one.endsWith("cgroup.procs"))) {
      const listed = await readFile(join(top, "kubepods", name), "utf8").catch(() => "");
      for (const pid of listed.split("\n").filter(Boolean)) pids.add(Number(pid));
    }
  }
  return pids;
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
