// The dashboard that was built into this program.
import { type PackedFiles, type PageFiles, unpackFiles } from "../dashboard/page-files.ts";

// Replaced by tools/bundle.ts.
declare const KRANE_DASHBOARD: PackedFiles | undefined;

/** Undefined when running from source. */
export function loadDashboard(): PageFiles | undefined {
  return typeof KRANE_DASHBOARD === "undefined" ? undefined : unpackFiles(KRANE_DASHBOARD);
}
