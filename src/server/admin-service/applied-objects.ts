// Converts the object in a request to what the store keeps. It is checked with the agent's
// own functions, so that a spec that the agent would reject is rejected here, while the
// caller can still fix it.
import type { ObjectSpec } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type ApplyMessage, allKinds, type KindName, kindOf, oneOf } from "../../kinds/kinds.ts";
import type { ParsedMessage, Refuse } from "../../model/field-problem.ts";

export interface AppliedObject {
  readonly kind: KindName;
  readonly id: string;
  readonly spec: ApplyMessage<KindName>;
}

// Only the agent knows where it runs and which registries it allows.
const rules = { registries: [] };

/** Undefined if it was rejected. */
export function parseObject(object: ObjectSpec | undefined, refuse: Refuse): AppliedObject | undefined {
  const { spec } = object ?? {};
  if (spec?.case === undefined) {
    refuse("spec", `needs ${oneOf(allKinds)}`);
    return undefined;
  }
  const { case: name, value } = spec;
  const kind = kindOf(name);
  record(name, kind.parseApply(value, rules), refuse);
  return { kind: name, id: kind.idOf(value), spec: value };
}

function record(prefix: string, outcome: ParsedMessage<unknown>, refuse: Refuse): void {
  if (outcome.kind === "valid") return;
  for (const { path, message } of outcome.problems) refuse(`${prefix}.${path}`, message);
}
