// Version and revision. They are built into the bundle; when running from source, the version comes from package.json.
import { readFileSync } from "node:fs";
import type { BuildInfo } from "../telemetry/metrics.ts";

// Replaced by tools/bundle.ts.
declare const KRANE_VERSION: string | undefined;
declare const KRANE_REVISION: string | undefined;

export function loadBuildInfo(nodeVersion: string): BuildInfo {
  return {
    version: typeof KRANE_VERSION === "string" ? KRANE_VERSION : loadPackageVersion(),
    revision: typeof KRANE_REVISION === "string" ? KRANE_REVISION : "source",
    nodeVersion,
  };
}

function loadPackageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const { version } = manifest as { readonly version: string };
  return version;
}
