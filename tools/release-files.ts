// The files that a release consists of. npm and Helm would both name theirs krane-X.Y.Z.tgz, so the chart's has another
// name: the pages of a release list all files in one folder.
import type { Architecture } from "./debian-tool.ts";

export const releaseArchitectures: readonly Architecture[] = ["amd64", "arm64"];

export function releaseFiles(version: string) {
  return {
    program: `krane-${version}.tgz`,
    apiServer: `krane-kube-apiserver-${version}.tgz`,
    chart: `krane-chart-${version}.tgz`,
    manifests: `krane-manifests-${version}.tar.gz`,
    packageList: `krane-${version}.cdx.json`,
    notes: "NOTES.md",
    image: (architecture: Architecture) => `krane-image-${version}-${architecture}.tar`,
  } as const;
}
