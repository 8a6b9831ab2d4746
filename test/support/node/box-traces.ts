// What a box may leave on the machine.

import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Everything but control groups and processes. `parent`: the folder that boxes make theirs in. */
export async function traces(parent: string) {
  return {
    folders: (await readdir(parent)).filter((name) => name.startsWith("krane-node-")),
    interfaces: (await readdir("/sys/class/net")).sort(),
    mounts: (await readFile("/proc/self/mounts", "utf8")).split("\n").filter((line) => line.includes(parent)),
    overcommit: await readFile("/proc/sys/vm/overcommit_memory", "utf8"),
    written: await exists("/var/lib/krane-box-was-here"),
  };
}

/** Those of the boxes with these names; another test run may have one too. */
export async function cgroupsOf(boxes: readonly string[]): Promise<readonly string[]> {
  const root = "/sys/fs/cgroup";
  const folders = [root, ...(await readdir(root)).map((name) => join(root, name))];
  const names = await Promise.all(folders.map((folder) => readdir(folder).catch(() => [])));
  return names.flat().filter((name) => boxes.includes(name));
}

export async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
