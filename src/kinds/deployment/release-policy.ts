// How one release of an app replaces another, with the defaults.
import type { ReleasePolicy } from "../../gen/krane/admin/v1/app_pb.ts";
import type { Refuse } from "../../model/field-problem.ts";
import { parseAmount } from "../../model/message-fields.ts";

/** By the names of the message, in seconds except for `history`. */
export const releasePolicyDefaults = {
  readySeconds: 10,
  deadlineSeconds: 600,
  drainSeconds: 30,
  history: 10,
} as const;

type PolicyValues = Pick<ReleasePolicy, keyof typeof releasePolicyDefaults>;

/** In milliseconds. */
export function policyOf(policy: PolicyValues | undefined): {
  readonly readyMs: bigint;
  readonly deadlineMs: bigint;
  readonly drainMs: bigint;
  readonly history: number;
} {
  const { readySeconds, deadlineSeconds, drainSeconds, history } = complete(policy);
  return {
    readyMs: msOf(readySeconds),
    deadlineMs: msOf(deadlineSeconds),
    drainMs: msOf(drainSeconds),
    history,
  };
}

function complete(policy: PolicyValues = {}): Readonly<Record<keyof PolicyValues, number>> {
  const fallbacks = releasePolicyDefaults;
  return {
    readySeconds: policy.readySeconds ?? fallbacks.readySeconds,
    deadlineSeconds: policy.deadlineSeconds ?? fallbacks.deadlineSeconds,
    drainSeconds: policy.drainSeconds ?? fallbacks.drainSeconds,
    history: policy.history ?? fallbacks.history,
  };
}

function msOf(seconds: number): bigint {
  return BigInt(seconds) * 1_000n;
}

const dayS = 86_400;

/** Reports the problems of a policy by wire name. */
export function checkReleasePolicy(policy: PolicyValues | undefined, refuse: Refuse): void {
  const { readySeconds, deadlineSeconds, drainSeconds, history } = complete(policy);
  parseAmount("policy.ready_seconds", readySeconds, 0, dayS, refuse);
  parseAmount("policy.deadline_seconds", deadlineSeconds, 1, dayS, refuse);
  parseAmount("policy.drain_seconds", drainSeconds, 0, dayS, refuse);
  // Each kept release keeps its spec and its encrypted secrets.
  parseAmount("policy.history", history, 1, 20, refuse);
}
