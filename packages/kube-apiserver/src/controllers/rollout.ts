// Computes the next sizes of a Deployment's ReplicaSets in a rolling update, from their current sizes and available pods.
// No I/O.
//
// - Never more pods than replicas + maxSurge.
// - Never scales down below replicas - maxUnavailable available pods.
import type { Deployment, ReplicaSet } from "kubernetes-types/apps/v1.js";

export interface Limits {
  readonly replicas: number;
  readonly maxSurge: number;
  readonly maxUnavailable: number;
}

export function limitsOf({ spec }: Deployment): Limits {
  const replicas = spec?.replicas ?? 1;
  const isRolling = spec?.strategy?.type !== "Recreate";
  const { maxSurge = 0, maxUnavailable = 0 } = (isRolling ? spec?.strategy?.rollingUpdate : undefined) ?? {};
  const surge = share(maxSurge, replicas, Math.ceil);
  const unavailable = Math.min(share(maxUnavailable, replicas, Math.floor), replicas);
  // With both 0 after rounding, the rollout could never progress.
  return { replicas, maxSurge: surge, maxUnavailable: surge === 0 && unavailable === 0 ? 1 : unavailable };
}

export function share(amount: number | string, of: number, round: (value: number) => number): number {
  if (typeof amount === "number") return amount;
  return round((Number.parseInt(amount, 10) * of) / 100);
}

export function sizeOf({ spec }: ReplicaSet): number {
  return spec?.replicas ?? 1;
}

export function availableOf({ status }: ReplicaSet): number {
  return status?.availableReplicas ?? 0;
}

export function sum(sets: readonly ReplicaSet[], amount: (set: ReplicaSet) => number): number {
  return sets.reduce((total, set) => total + amount(set), 0);
}

/** How large the new set may be now. */
export function nextNewSize(limits: Limits, newSet: ReplicaSet, old: readonly ReplicaSet[]): number {
  const size = sizeOf(newSet);
  if (size >= limits.replicas) return limits.replicas;
  const room = limits.replicas + limits.maxSurge - size - sum(old, sizeOf);
  return size + Math.max(0, Math.min(room, limits.replicas - size));
}

/** The next sizes of the old sets, oldest first; only those that change. */
export function nextOldSizes(
  limits: Limits,
  newSet: ReplicaSet,
  old: readonly ReplicaSet[],
): Map<ReplicaSet, number> {
  const sizes = new Map<ReplicaSet, number>();
  const sizeNow = (set: ReplicaSet) => sizes.get(set) ?? sizeOf(set);
  const minAvailable = limits.replicas - limits.maxUnavailable;
  const newUnavailable = sizeOf(newSet) - availableOf(newSet);
  let spare = sum([...old, newSet], sizeOf) - minAvailable - newUnavailable;
  // Unavailable pods go first: removing them costs no availability, and they may block the rollout.
  for (const set of old) {
    const broken = Math.min(Math.max(sizeOf(set) - availableOf(set), 0), Math.max(spare, 0));
    if (broken === 0) continue;
    sizes.set(set, sizeOf(set) - broken);
    spare -= broken;
  }
  let excess = Math.min(sum([...old, newSet], availableOf) - minAvailable, spare);
  for (const set of old) {
    const taken = Math.min(sizeNow(set), Math.max(excess, 0));
    if (taken === 0) continue;
    sizes.set(set, sizeNow(set) - taken);
    excess -= taken;
  }
  return sizes;
}
