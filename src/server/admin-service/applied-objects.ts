// From the object of a request to what the store keeps. It is checked with the same
// functions as in the agent, so that what the agent would park is refused here, while
// somebody is there to hear it.
import type { ObjectSpec } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type ApplyMessage, allKinds, type KindName, kindOf, oneOf } from "../../kinds/kinds.ts";
import type { ParsedMessage, Refuse } from "../../model/field-problem.ts";

export interface AppliedObject {
  readonly kind: KindName;
  readonly id: string;
  readonly spec: ApplyMessage<KindName>;
}

// Where an agent runs, and from where it lets images come, is known to that agent alone.
const rules = { registries: [] };

/** Undefined where nothing can be made of it, which was refused then. */
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
