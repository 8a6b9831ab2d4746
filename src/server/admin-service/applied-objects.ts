// From the object of a request to what the store keeps. It is checked with the same
// functions as in the agent, so that what the agent would park is refused here, while
// somebody is there to hear it.
import type { ObjectSpec } from "../../gen/krane/admin/v1/admin_pb.ts";
import { parseApplyDeployment } from "../../kinds/deployment/spec.ts";
import { parseApplyPolicy } from "../../kinds/policy/spec.ts";
import { parseApplySentinel } from "../../kinds/sentinel/spec.ts";
import type { ParsedMessage, Refuse } from "../../model/field-problem.ts";
import { type Kind, kinds, type Spec } from "../kinds.ts";

export type AppliedObject = {
  readonly [K in Kind]: { readonly kind: K; readonly id: string; readonly spec: Spec<K> };
}[Kind];

// Where an agent runs, and from where it lets images come, is known to that agent alone.
const rules = { registries: [] };

/** Undefined where nothing can be made of it, which was refused then. */
export function parseObject(object: ObjectSpec | undefined, refuse: Refuse): AppliedObject | undefined {
  const { spec } = object ?? {};
  switch (spec?.case) {
    case "deployment":
      record("deployment", parseApplyDeployment(spec.value, rules), refuse);
      return { kind: "deployment", id: kinds.deployment.idOf(spec.value), spec: spec.value };
    case "sentinel":
      record("sentinel", parseApplySentinel(spec.value, rules), refuse);
      return { kind: "sentinel", id: kinds.sentinel.idOf(spec.value), spec: spec.value };
    case "policy":
      record("policy", parseApplyPolicy(spec.value, {}), refuse);
      return { kind: "policy", id: kinds.policy.idOf(spec.value), spec: spec.value };
    default:
      refuse("spec", "needs a deployment, a sentinel or a policy");
      return undefined;
  }
}

function record(prefix: string, outcome: ParsedMessage<unknown>, refuse: Refuse): void {
  if (outcome.kind === "valid") return;
  for (const { path, message } of outcome.problems) refuse(`${prefix}.${path}`, message);
}
