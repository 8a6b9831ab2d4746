// Runs a program in namespaces of its own, in which a real Kubernetes node can work as if the machine were its own.
//
// Mounts, interfaces, firewall rules and processes belong to the namespaces: the kernel removes all of them with the
// first process in there, and a leash ends that process when this one ends, however it ends. Folders and control groups
// are outside, and the leash's janitor removes them.

import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openKennel } from "../cluster/leash.ts";

/** The address of the node, and of everything that listens in the box. */
export const nodeAddress = "172.30.0.1";
export const nodeName = "krane-node";
const serviceRange = "10.96.0.0/16";

export interface BoxProgram {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** What the program in the box finds in its environment. */
export const boxVariables = { dir: "KRANE_BOX_DIR", cgroup: "KRANE_BOX_CGROUP" } as const;

/** At least as many as all pods of a test ask for. */
const nodeCores = 32;

const namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts"];

// The first process of the box. It has to be one that reaps what others leave, which bash does and Node does not.
//
// - The bridge has the node's address and no other member; the route makes the addresses of Services reachable for
//   processes outside pods, whose packets kube-proxy redirects only after they have a route.
// - Writes below /var/lib and /var/log, some of which have fixed paths in the kubelet and CNI, go to a layer in memory.
// - The kubelet would set these kernel settings for the whole machine. It finds them set.
// - The kubelet counts the cores of the machine in these folders. It finds each of them several times (cpu1, cpu01, cpu001),
//   so that the scheduler has room for many programs that mostly wait. How fast they run does not depend on it.
const init = `
set -eu
box=$1 cgroup=$2 address=$3 services=$4
shift 4
hostname ${nodeName}
ip link set lo up
ip link add node0 type bridge
ip address add "$address/32" dev node0
ip link set node0 up
ip route add "$services" dev node0
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p "$box/layer" "$box/tmp" /run/lock
mount -t tmpfs tmpfs "$box/layer"
for folder in lib log; do
  mkdir "$box/layer/$folder" "$box/layer/$folder.work"
  mount -t overlay -o "lowerdir=/var/$folder,upperdir=$box/layer/$folder,workdir=$box/layer/$folder.work" \\
    overlay "/var/$folder"
done
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \\
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file="$box/layer/\${setting%=*}"
  mkdir -p "\${file%/*}"
  echo "\${setting#*=}" > "$file"
  mount --bind "$file" "/proc/sys/\${setting%=*}"
done
if [ -d /sys/devices/system/node/node0 ]; then
  cores="$box/layer/cores" core=0 zeros=""
  while [ "$core" -lt ${nodeCores} ]; do
    for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
      folder="$cores/node0/cpu$zeros\${cpu##*/cpu}/topology"
      mkdir -p "$folder"
      echo "$core" > "$folder/core_id"
      echo 0 > "$folder/physical_package_id"
      core=$((core + 1))
    done
    zeros="0$zeros"
  done
  mount --bind "$cores" /sys/devices/system/node
fi
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir "/sys/fs/cgroup/$cgroup"
else
  for hierarchy in /sys/fs/cgroup/*/; do
    [ ! -e "$hierarchy/cgroup.controllers" ] || continue
    mkdir "$hierarchy$cgroup"
    # Without these no process can join.
    for file in cpuset.cpus cpuset.mems; do
      [ ! -e "$hierarchy$file" ] || cat "$hierarchy$file" > "$hierarchy$cgroup/$file"
    done
  done
fi
trap 'exit 143' TERM INT
"$@" &
wait "$!" && status=0 || status=$?
exit "$status"
`;

/**
 * Runs the program that `prepare` returns. It is called with the folder of the box, which both sides see and which
 * vanishes with the box. Resolves with whether the program ended well, when nothing is left.
 */
export async function runInBox(
  prepare: (dir: string) => BoxProgram | Promise<BoxProgram>,
  signal: AbortSignal,
): Promise<boolean> {
  const cgroup = `krane-node-${randomBytes(4).toString("hex")}`;
  const dir = join(tmpdir(), cgroup);
  // The janitor comes before the folder, so that no moment is left at which the folder would stay.
  const kennel = openKennel(dir, cgroup);
  try {
    // PostgreSQL runs as another user, and must reach its folder.
    await mkdir(dir, { mode: 0o711 });
    signal.throwIfAborted();
    const program = await prepare(dir);
    const variables = { [boxVariables.dir]: dir, [boxVariables.cgroup]: cgroup, TMPDIR: join(dir, "tmp") };
    const box = kennel.start({
      name: "box",
      file: "unshare",
      args: [
        ...namespaces,
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--propagation=private",
        "bash",
        ...["-c", init, "krane-box", dir, cgroup, nodeAddress, serviceRange],
        program.file,
        ...program.args,
      ],
      cwd: process.cwd(),
      env: { ...program.env, ...variables },
    });
    const aborted = new Promise<string>((resolve) => {
      signal.addEventListener("abort", () => resolve("aborted"), { once: true });
    });
    return (await Promise.race([box.ended, aborted])) === "exit code 0";
  } finally {
    await kennel.close();
  }
}
