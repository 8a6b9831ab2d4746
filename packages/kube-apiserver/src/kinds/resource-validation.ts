// The rules of resource requests and limits.
import type { ResourceRequirements } from "kubernetes-types/core/v1.js";
import { invalidValue, required } from "../causes.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, refuse } from "./field-checks.ts";
import { qualifiedNameProblems } from "./names.ts";
import { compareQuantities, isWholeQuantity } from "./quantity-order.ts";

const standardNames = new Set(["cpu", "memory", "ephemeral-storage"]);

export function checkResources(field: string, { limits = {}, requests = {} }: ResourceRequirements): Causes {
  const found: KubeStatusCause[] = [];
  for (const [name, amount] of Object.entries(limits)) {
    found.push(...checkAmount(`${field}.limits[${name}]`, name, amount));
  }
  for (const [name, amount] of Object.entries(requests)) {
    found.push(...checkAmount(`${field}.requests[${name}]`, name, amount));
    const limit = Object.hasOwn(limits, name) ? limits[name] : undefined;
    if (limit !== undefined && compareQuantities(amount, limit) > 0) {
      const why = `must be less than or equal to ${name} limit of ${limit}`;
      found.push(invalidValue(`${field}.requests`, amount, why));
    } else if (limit === undefined && isExtended(name)) {
      found.push(required(`${field}.limits`, "Limit must be set for non overcommitable resources"));
    }
  }
  return found;
}

function checkAmount(field: string, name: string, amount: string): Causes {
  const found: KubeStatusCause[] = [...refuse(field, name, qualifiedNameProblems(name))];
  if (!name.includes("/") && !isStandard(name)) {
    found.push(invalidValue(field, name, "must be a standard resource type or fully qualified"));
    found.push(invalidValue(field, name, "must be a standard resource for containers"));
  }
  if (compareQuantities(amount, "0") < 0)
    found.push(invalidValue(field, amount, "must be greater than or equal to 0"));
  if (isExtended(name) && !isWholeQuantity(amount))
    found.push(invalidValue(field, amount, "must be an integer"));
  return found;
}

function isStandard(name: string): boolean {
  return standardNames.has(name) || name.startsWith("hugepages-");
}

// Whole devices: they cannot be shared, so what is asked for must also be the limit.
function isExtended(name: string): boolean {
  return name.includes("/") && !name.includes("kubernetes.io/");
}
