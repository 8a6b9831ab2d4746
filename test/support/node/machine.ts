// Whether this machine can run a real node: root, namespaces, writable control groups and some Debian packages.

import { execFile } from "node:child_process";
import { access, mkdir, readdir, readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cniPluginDir } from "./node-components.ts";

export type Machine =
  | { readonly kind: "able" }
  /** What is missing and what to do about it, on one line. */
  | { readonly kind: "unable"; readonly what: string }
  /** Only packages are missing. */
  | { readonly kind: "lacks-packages"; readonly what: string; readonly packages: readonly string[] };

const run = promisify(execFile);
const searched = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Programs by the Debian package that has them. */
const programs: Readonly<Record<string, readonly string[]>> = {
  runc: ["runc"],
  "containernetworking-plugins": ["ptp", "host-local", "portmap"],
  iptables: ["iptables"],
  nftables: ["nft"],
  iproute2: ["ip"],
  openssl: ["openssl"],
  buildah: ["buildah"],
  mmdebstrap: ["mmdebstrap"],
  "util-linux": ["unshare"],
};

export async function inspectMachine(): Promise<Machine> {
  if (process.platform !== "linux") return unable("it is not Linux; use a Linux machine");
  if (process.getuid?.() !== 0) return unable("this user is not root; run it as root: `sudo make test-node`");
  const packages = await missingPackages();
  if (packages.length > 0) {
    const what = `Debian packages are missing; install them: apt-get install --yes --no-install-recommends ${packages.join(" ")}`;
    return { kind: "lacks-packages", what, packages };
  }
  return (
    (await namespaceProblem()) ?? (await overlayProblem()) ?? (await cgroupProblem()) ?? { kind: "able" }
  );
}

export async function installPackages(packages: readonly string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  await run("apt-get", ["update", "--quiet"], { env });
  await run("apt-get", ["install", "--yes", "--quiet", "--no-install-recommends", ...packages], { env });
}

async function missingPackages(): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const [name, files] of Object.entries(programs)) {
    const found = await Promise.all(files.map(isInstalled));
    if (found.includes(false)) missing.push(name);
  }
  return missing;
}

async function isInstalled(program: string): Promise<boolean> {
  const places = [...searched, cniPluginDir].map((folder) => access(join(folder, program)));
  return Promise.any(places).then(
    () => true,
    () => false,
  );
}

async function namespaceProblem(): Promise<Machine | undefined> {
  const bridge = "ip link set lo up && ip link add node0 type bridge && nft list ruleset";
  const args = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--mount-proc", "sh", "-c", bridge];
  return run("unshare", args).then(
    () => undefined,
    (error: Error) =>
      unable(
        `no namespaces with a network of their own (${lastLine(error.message)}); use a privileged container or a machine`,
      ),
  );
}

async function overlayProblem(): Promise<Machine | undefined> {
  const known = await readFile("/proc/filesystems", "utf8");
  return /\boverlay$/m.test(known)
    ? undefined
    : unable("the kernel has no overlay file system; load it: modprobe overlay");
}

async function cgroupProblem(): Promise<Machine | undefined> {
  const root = "/sys/fs/cgroup";
  const isUnified = await access(join(root, "cgroup.controllers")).then(
    () => true,
    () => false,
  );
  const folders = isUnified
    ? [root]
    : (await readdir(root)).filter((name) => name !== "unified").map((name) => join(root, name));
  for (const folder of folders) {
    const probe = join(folder, `krane-probe-${process.pid}`);
    try {
      await mkdir(probe);
      await rmdir(probe);
    } catch (error) {
      return unable(
        `control groups cannot be created in ${folder} (${lastLine(String(error))}); use a privileged container or a machine`,
      );
    }
  }
  return folders.length > 0 ? undefined : unable(`${root} has no control groups; mount them`);
}

function unable(what: string): Machine {
  return { kind: "unable", what };
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
