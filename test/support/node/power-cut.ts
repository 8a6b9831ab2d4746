// What a node is left with when its power is cut: what is on its disk. All processes of the node end at once, and mounts,
// sockets, network namespaces and firewall rules go with them. The control plane is elsewhere, and stays.

import { execFile } from "node:child_process";
import { access, readdir, readFile, readlink, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { eventually } from "../eventually.ts";

export interface NodeProcesses {
  /** Whose programs are the node's. */
  readonly binariesDir: string;
  /** The control group that all containers are below. */
  readonly cgroup: string;
}

const run = promisify(execFile);
/** Where containerd and CNI keep what does not survive a reboot. */
const volatileFolders = ["/run/containerd", "/run/netns"];

export async function endEverything(node: NodeProcesses): Promise<void> {
  // Killing one may make another one start something.
  await eventually("all processes of the node have ended", async () => {
    const pids = await processesOf(node);
    for (const pid of pids) kill(pid);
    if (pids.size > 0) throw new Error(`${pids.size} are left`);
  });
  const mounts = (await readFile("/proc/self/mounts", "utf8"))
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "");
  const below = mounts.filter((path) => volatileFolders.some((folder) => path.startsWith(`${folder}/`)));
  // Those inside others come later in the list.
  for (const path of below.reverse()) await run("umount", [path]);
  for (const folder of volatileFolders) await rm(folder, { recursive: true, force: true });
  // The kubelet would spend seconds on each that has no container.
  for (const pods of await podGroups(node.cgroup))
    await run("find", [pods, "-depth", "-type", "d", "-delete"]);
  await run("nft", ["flush", "ruleset"]);
}

/** The processes of the node's programs and of all containers, seen from inside the box. */
async function processesOf({ binariesDir, cgroup }: NodeProcesses): Promise<ReadonlySet<number>> {
  const pids = new Set<number>();
  for (const pods of await podGroups(cgroup)) {
    const files = await readdir(pods, { recursive: true }).catch(() => []);
    for (const name of files.filter((each) => each.endsWith("cgroup.procs"))) {
      const listed = await readFile(join(pods, name), "utf8").catch(() => "");
      for (const pid of listed.split("\n").filter(Boolean)) pids.add(Number(pid));
    }
  }
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const program = await readlink(`/proc/${name}/exe`).catch(() => "");
    if (program.startsWith(`${binariesDir}/`)) pids.add(Number(name));
  }
  return pids;
}

/** The control groups of all pods, one in each hierarchy. */
async function podGroups(cgroup: string): Promise<readonly string[]> {
  const root = "/sys/fs/cgroup";
  const hierarchies = [root, ...(await readdir(root)).map((name) => join(root, name))];
  const groups = hierarchies.map((hierarchy) => join(hierarchy, cgroup, "kubepods"));
  const found = await Promise.all(
    groups.map((group) =>
      access(group).then(
        () => true,
        () => false,
      ),
    ),
  );
  return groups.filter((_, index) => found[index]);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
