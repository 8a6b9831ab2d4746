// Table columns that many kinds share, and the format of ages in `kubectl get`.

import type { Column } from "./resource.ts";
import { parseTimestamp } from "./timestamps.ts";
import type { KubeObject } from "./types.ts";

export const nameColumn: Column<KubeObject> = {
  name: "Name",
  type: "string",
  format: "name",
  description: "Name must be unique within a namespace.",
  cell: (object) => object.metadata?.name ?? "",
};

export const ageColumn: Column<KubeObject> = {
  name: "Age",
  type: "string",
  description: "CreationTimestamp is a timestamp representing the server time when this object was created.",
  cell: (object, nowMs) => ageSince(object.metadata?.creationTimestamp, nowMs),
};

export function ageSince(timestamp: string | undefined, nowMs: number): string {
  const sinceMs = timestamp === undefined ? undefined : parseTimestamp(timestamp);
  return sinceMs === undefined ? "<unknown>" : humanDuration(nowMs - sinceMs);
}

// Two units for small values, one for larger ones: 5s, 2m10s, 15m, 3h5m, 9h, 3d4h, 12d, 2y40d, 9y.
function humanDuration(durationMs: number): string {
  const seconds = Math.floor(durationMs / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return twoUnits(minutes, "m", seconds % 60, "s");
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 8) return twoUnits(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  if (hours < 24 * 8) return twoUnits(days, "d", hours % 24, "h");
  if (days < 365 * 2) return `${days}d`;
  const years = Math.floor(days / 365);
  return years < 8 ? twoUnits(years, "y", days % 365, "d") : `${years}y`;
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}
