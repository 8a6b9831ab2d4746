// The task of a process that applies objects, and its result.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";

export interface ApplyTask {
  readonly side: "krane" | "raw";
  readonly url: string;
  readonly ca: string;
  readonly token: string;
  readonly namespace: string;
  /** Each apply is for a different object, named after this; absent: all for the same one. */
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

/** Applies one manifest; rejects unless the server accepted it. */
export type Apply = (manifest: ReplicaSet) => Promise<void>;
