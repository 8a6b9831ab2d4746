// What a test control plane is made of, and how each part is made.
//
// Every version stands in a go.mod of its own folder, so that Go's own commands
// update and verify it. The cache key covers those files and this one: whatever
// changes the result of a build belongs here, and nothing else does.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

export interface BuildStep {
  /** The file that the step leaves in the cache folder. */
  readonly file: string;
  /** The folder under tools/ whose go.mod pins it. */
  readonly folder: string;
  readonly from:
    | { readonly kind: "main-package"; readonly importPath: string }
    | { readonly kind: "module-file"; readonly module: string; readonly path: string };
}

// The cheap steps come first, so that a machine that cannot download modules
// learns so in seconds. The API server comes before the other Kubernetes
// binaries because they share most of what it compiles.
export const buildSteps: readonly BuildStep[] = [
  {
    file: "ciliumnetworkpolicies.yaml",
    folder: "cilium",
    from: {
      kind: "module-file",
      module: "github.com/cilium/cilium",
      path: "pkg/k8s/apis/cilium.io/client/crds/v2/ciliumnetworkpolicies.yaml",
    },
  },
  mainPackage("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
  mainPackage("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
  mainPackage("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
  mainPackage("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
  mainPackage("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
  mainPackage("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"),
];

/** Settings of the user's shell that would make the same key mean different binaries. */
export const goBuildEnv = {
  CGO_ENABLED: "0",
  GOFLAGS: "-mod=readonly",
  GOTOOLCHAIN: "local",
  GOWORK: "off",
} as const;

/** The `go build` arguments of one binary, without its output and its import path. */
export function buildFlags(folder: string, kubernetesVersion: string): readonly string[] {
  const stamp = folder === "kubernetes" ? versionStamp(kubernetesVersion) : [];
  return ["-trimpath", "-buildvcs=false", "-ldflags", ["-s", "-w", ...stamp].join(" ")];
}

// A binary built from the module carries a placeholder version, which clients
// that choose features by server version would misread.
function versionStamp(version: string): readonly string[] {
  const [major = "", minor = ""] = version.replace(/^v/, "").split(".");
  const facts = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: "clean" };
  return ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"].flatMap((path) =>
    Object.entries(facts).map(([name, value]) => `-X ${path}.${name}=${value}`),
  );
}

export async function loadKubernetesVersion(toolsDir: string): Promise<string> {
  const text = await readFile(join(toolsDir, "kubernetes", "go.mod"), "utf8");
  const version = /^\s*(?:require\s+)?k8s\.io\/kubernetes\s+(v\S+)/m.exec(text)?.[1];
  if (version === undefined) {
    throw new Error("tools/kubernetes/go.mod does not require k8s.io/kubernetes");
  }
  return version;
}

/** The newest `go` directive of the pinned modules: the oldest Go that can build them all. */
export async function loadNeededGoVersion(toolsDir: string): Promise<string> {
  const versions = await Promise.all(
    moduleFolders().map(async (folder) => {
      const text = await readFile(join(toolsDir, folder, "go.mod"), "utf8");
      return /^go\s+(\S+)/m.exec(text)?.[1] ?? "1.0";
    }),
  );
  return versions.reduce((newest, version) => (isOlderGo(newest, version) ? version : newest));
}

/** Compares `1.26.0`, `go1.26.8` and `go1.27rc1`; a pre-release counts as its release. */
export function isOlderGo(version: string, needed: string): boolean {
  const left = versionNumbers(version);
  const right = versionNumbers(needed);
  const at = left.findIndex((number, index) => number !== right[index]);
  return at >= 0 && (left[at] ?? 0) < (right[at] ?? 0);
}

function versionNumbers(version: string): readonly number[] {
  const found = /(\d+)\.(\d+)(?:\.(\d+))?/.exec(version);
  return [1, 2, 3].map((group) => Number(found?.[group] ?? 0));
}

/** Names the result of a build before it is made: equal keys, equal binaries. */
export async function loadCacheKey(toolsDir: string, goVersion: string): Promise<string> {
  const hash = createHash("sha256").update(`${goVersion} ${process.platform} ${process.arch}\n`);
  const files = moduleFolders().flatMap((folder) => [join(folder, "go.mod"), join(folder, "go.sum")]);
  for (const file of [...files, "kube-recipe.ts"]) {
    hash.update(`${file}\n`).update(await readFile(join(toolsDir, file)));
  }
  return hash.digest("hex").slice(0, 12);
}

function moduleFolders(): readonly string[] {
  return [...new Set(buildSteps.map((step) => step.folder))].sort();
}

function mainPackage(file: string, folder: string, importPath: string): BuildStep {
  return { file, folder, from: { kind: "main-package", importPath } };
}
