// The resources used by the running process, in the units that benchmarks print.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

export function residentMb(): number {
  return process.memoryUsage.rss() / 2 ** 20;
}

export function peakResidentMb(): number {
  return process.resourceUsage().maxRSS / 1024;
}

/** Reachable bytes. The garbage collector is forced only here, so that it does not affect earlier measurements. */
export function reachableHeapBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let round = 0; round < 3; round++) collect();
  return process.memoryUsage().heapUsed;
}
