// What the benchmarks ask of a process that applies, and what it tells them.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";

export interface ApplyTask {
  readonly side: "krane" | "raw";
  readonly url: string;
  readonly ca: string;
  readonly token: string;
  readonly namespace: string;
  /** Each apply is of another object, named after this; absent: all of one. */
  readonly namePrefix?: string;
  readonly callers: number;
  readonly connections: number;
  /** Applied before measuring, so that connecting and compiling are left out. */
  readonly warmUp: number;
  readonly count: number;
}

export interface ApplyResult {
  readonly cpuSeconds: number;
  readonly seconds: number;
  readonly peakMb: number;
}

/** Applies one manifest; rejects unless the server took it. */
export type Apply = (manifest: ReplicaSet) => Promise<void>;
