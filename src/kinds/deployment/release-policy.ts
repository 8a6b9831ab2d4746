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
  stepSeconds: 60,
} as const;

type PolicyValues = Pick<ReleasePolicy, keyof typeof releasePolicyDefaults>;

/** In milliseconds. */
export function policyOf(policy: (PolicyValues & Pick<ReleasePolicy, "steps">) | undefined): {
  readonly readyMs: bigint;
  readonly deadlineMs: bigint;
  readonly drainMs: bigint;
  readonly history: number;
  readonly steps: readonly number[];
  readonly stepMs: bigint;
} {
  const { readySeconds, deadlineSeconds, drainSeconds, history, stepSeconds } = complete(policy);
  return {
    readyMs: msOf(readySeconds),
    deadlineMs: msOf(deadlineSeconds),
    drainMs: msOf(drainSeconds),
    history,
    steps: policy?.steps ?? [],
    stepMs: msOf(stepSeconds),
  };
}

function complete(policy: PolicyValues = {}): Readonly<Record<keyof PolicyValues, number>> {
  const fallbacks = releasePolicyDefaults;
  return {
    readySeconds: policy.readySeconds ?? fallbacks.readySeconds,
    deadlineSeconds: policy.deadlineSeconds ?? fallbacks.deadlineSeconds,
    drainSeconds: policy.drainSeconds ?? fallbacks.drainSeconds,
    history: policy.history ?? fallbacks.history,
    stepSeconds: policy.stepSeconds ?? fallbacks.stepSeconds,
  };
}

function msOf(seconds: number): bigint {
  return BigInt(seconds) * 1_000n;
}

const dayS = 86_400;
const stepsMax = 20;

/** Reports the problems of a policy by wire name. */
export function checkReleasePolicy(
  policy: (PolicyValues & Pick<ReleasePolicy, "steps">) | undefined,
  refuse: Refuse,
): void {
  const { readySeconds, deadlineSeconds, drainSeconds, history, stepSeconds } = complete(policy);
  parseAmount("policy.ready_seconds", readySeconds, 0, dayS, refuse);
  parseAmount("policy.deadline_seconds", deadlineSeconds, 1, dayS, refuse);
  parseAmount("policy.drain_seconds", drainSeconds, 0, dayS, refuse);
  // Each kept release keeps its spec and its encrypted secrets.
  parseAmount("policy.history", history, 1, 20, refuse);
  parseAmount("policy.step_seconds", stepSeconds, 1, dayS, refuse);
  const { steps = [] } = policy ?? {};
  if (steps.length > stepsMax) refuse("policy.steps", `must be at most ${stepsMax}, but are ${steps.length}`);
  for (const [index, step] of steps.entries())
    parseAmount(`policy.steps[${index}]`, step, (steps[index - 1] ?? 0) + 1, 99, refuse);
}
