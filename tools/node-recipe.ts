// What a real Kubernetes node is made of, and how each part is built. The rest of it comes from Debian packages.
//
// The recipe of the control plane has a cache key of its own (kube-recipe.ts), so that a change here builds only the
// node. The kubelet has a go.mod beside that of the control plane for the same reason; a test holds their versions
// together.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buildFlags, isOlderGo, loadKubernetesVersion } from "./kube-recipe.ts";

export interface NodeStep {
  /** The file that the step writes. */
  readonly file: string;
  /** The folder under tools/ whose go.mod pins it. */
  readonly folder: string;
  readonly importPath: string;
  /** A change of the pinned source, compiled from a copy of the module. */
  readonly edit?: SourceEdit;
}

export interface SourceEdit {
  readonly module: string;
  readonly path: string;
  /** Must occur exactly once. */
  readonly before: string;
  readonly after: string;
}

// gVisor's shim ends where it may not lower its OOM score, which only protects it from the kernel's OOM killer.
// containerd's own shim ignores the same error.
const tolerateOomScore: SourceEdit = {
  module: "gvisor.dev/gvisor",
  path: "pkg/shim/v1/manager.go",
  before: "if err := sys.SetOOMScore(cmd.Process.Pid, oomScoreMax); err != nil {",
  after: "if err := sys.SetOOMScore(cmd.Process.Pid, oomScoreMax); err != nil && !os.IsPermission(err) {",
};

const containerd = "github.com/containerd/containerd/v2/cmd";

// The small one comes first, so that a Go that cannot compile fails in seconds.
export const nodeSteps: readonly NodeStep[] = [
  { file: "pause", folder: "pause", importPath: "krane/tools/pause" },
  { file: "containerd", folder: "containerd", importPath: `${containerd}/containerd` },
  {
    file: "containerd-shim-runc-v2",
    folder: "containerd",
    importPath: `${containerd}/containerd-shim-runc-v2`,
  },
  { file: "ctr", folder: "containerd", importPath: `${containerd}/ctr` },
  { file: "kubelet", folder: "kubelet", importPath: "k8s.io/kubernetes/cmd/kubelet" },
  { file: "kube-proxy", folder: "kubelet", importPath: "k8s.io/kubernetes/cmd/kube-proxy" },
  { file: "runsc", folder: "gvisor", importPath: "gvisor.dev/gvisor/runsc" },
  {
    file: "containerd-shim-runsc-v1",
    folder: "gvisor",
    importPath: "gvisor.dev/gvisor/shim",
    edit: tolerateOomScore,
  },
];

const folders = [...new Set(nodeSteps.map(({ folder }) => folder))].sort();

/** The kubelet carries the version of the control plane. */
export async function nodeBuildFlags(toolsDir: string, folder: string): Promise<readonly string[]> {
  return buildFlags(folder === "kubelet" ? "kubernetes" : folder, await loadKubernetesVersion(toolsDir));
}

/** The newest `go` directive of the pinned modules: the oldest Go that can build them all. */
export async function loadNodeGoVersion(toolsDir: string): Promise<string> {
  const pins = await Promise.all(folders.map((folder) => readFile(join(toolsDir, folder, "go.mod"), "utf8")));
  return pins
    .map((text) => /^go\s+(\S+)/m.exec(text)?.[1] ?? "1.0")
    .reduce((newest, version) => (isOlderGo(newest, version) ? version : newest));
}

/** Names the result of a build before it is made: equal keys, equal binaries. */
export async function loadNodeCacheKey(toolsDir: string, goVersion: string): Promise<string> {
  const hash = createHash("sha256").update(`${goVersion} ${process.platform} ${process.arch}\n`);
  const pins = folders.flatMap((folder) => [join(folder, "go.mod"), join(folder, "go.sum")]);
  for (const file of [...pins, "pause/main.go", "kube-recipe.ts", "node-recipe.ts"]) {
    hash.update(`${file}\n`).update(await readFile(join(toolsDir, file)));
  }
  return hash.digest("hex").slice(0, 12);
}
