// Validates the scheduling fields of a pod: tolerations, topology spread, affinity.
import type {
  Affinity,
  NodeSelectorTerm,
  PodAffinityTerm,
  Toleration,
  TopologySpreadConstraint,
  WeightedPodAffinityTerm,
} from "kubernetes-types/core/v1.js";
import { duplicate, forbiddenField, invalidValue, required, unsupported } from "../causes.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, refuse } from "./field-checks.ts";
import { checkLabelSelector } from "./label-selectors.ts";
import { dnsLabelProblems, labelValueProblems, qualifiedNameProblems } from "./names.ts";

export const taintEffects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const operators = ["Equal", "Exists"];
const unsatisfiable = ["DoNotSchedule", "ScheduleAnyway"];
const inclusion = ["Honor", "Ignore"];
const mustBePositive = "must be greater than zero";

export function checkTolerations(field: string, tolerations: readonly Toleration[]): Causes {
  return tolerations.flatMap((toleration, index) => checkToleration(`${field}[${index}]`, toleration));
}

function checkToleration(field: string, toleration: Toleration): Causes {
  const { key = "", operator = "Equal", value = "", effect = "", tolerationSeconds } = toleration;
  const found: KubeStatusCause[] = [];
  if (key !== "") found.push(...refuse(`${field}.key`, key, qualifiedNameProblems(key)));
  if (key === "" && operator !== "Exists")
    found.push(
      invalidValue(
        `${field}.operator`,
        toleration.operator ?? "",
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      ),
    );
  if (tolerationSeconds !== undefined && effect !== "NoExecute")
    found.push(
      invalidValue(`${field}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"),
    );
  if (operator === "Exists" && value !== "")
    found.push(invalidValue(`${field}.operator`, value, "value must be empty when `operator` is 'Exists'"));
  else if (operator === "Equal") found.push(...refuse(`${field}.operator`, value, labelValueProblems(value)));
  else if (operator !== "Exists") found.push(unsupported(`${field}.operator`, operator, operators));
  if (effect !== "" && !taintEffects.includes(effect))
    found.push(unsupported(`${field}.effect`, effect, taintEffects));
  return found;
}

export function checkSpread(field: string, constraints: readonly TopologySpreadConstraint[]): Causes {
  return constraints.flatMap((constraint, index) => {
    const at = `${field}[${index}]`;
    const { maxSkew = 0, topologyKey = "", whenUnsatisfiable = "", minDomains } = constraint;
    const { nodeAffinityPolicy, nodeTaintsPolicy, labelSelector, matchLabelKeys = [] } = constraint;
    const found: KubeStatusCause[] = [];
    if (maxSkew <= 0) found.push(invalidValue(`${at}.maxSkew`, maxSkew, mustBePositive));
    if (topologyKey === "") found.push(required(`${at}.topologyKey`, "can not be empty"));
    if (!unsatisfiable.includes(whenUnsatisfiable))
      found.push(unsupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, unsatisfiable));
    // Compared with the later ones only, so the earlier one of two duplicates is reported.
    const again = constraints
      .slice(index + 1)
      .some((other) => other.topologyKey === topologyKey && other.whenUnsatisfiable === whenUnsatisfiable);
    if (again)
      found.push(
        duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, `{${topologyKey}, ${whenUnsatisfiable}}`),
      );
    if (minDomains !== undefined && minDomains <= 0)
      found.push(invalidValue(`${at}.minDomains`, minDomains, mustBePositive));
    if (minDomains !== undefined && whenUnsatisfiable !== "DoNotSchedule")
      found.push(
        invalidValue(
          `${at}.minDomains`,
          minDomains,
          `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
        ),
      );
    for (const [name, policy] of Object.entries({ nodeAffinityPolicy, nodeTaintsPolicy })) {
      if (policy !== undefined && !inclusion.includes(policy))
        found.push(unsupported(`${at}.${name}`, policy, inclusion));
    }
    if (matchLabelKeys.length > 0 && labelSelector === undefined)
      found.push(
        forbiddenField(`${at}.matchLabelKeys`, "must not be specified when labelSelector is not set"),
      );
    found.push(...checkLabelSelector(`${at}.labelSelector`, labelSelector));
    return found;
  });
}

const requiredTerms = "requiredDuringSchedulingIgnoredDuringExecution";
const preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution";

export function checkAffinity(field: string, affinity: Affinity | undefined): Causes {
  const { nodeAffinity, podAffinity, podAntiAffinity } = affinity ?? {};
  return [
    ...checkNodeAffinity(`${field}.nodeAffinity`, nodeAffinity),
    ...checkPodAffinity(`${field}.podAffinity`, podAffinity),
    ...checkPodAffinity(`${field}.podAntiAffinity`, podAntiAffinity),
  ];
}

function checkNodeAffinity(field: string, affinity: Affinity["nodeAffinity"]): Causes {
  if (affinity === undefined) return [];
  const found: KubeStatusCause[] = [];
  const terms = affinity[requiredTerms]?.nodeSelectorTerms;
  if (affinity[requiredTerms] !== undefined) {
    const at = `${field}.${requiredTerms}.nodeSelectorTerms`;
    if ((terms ?? []).length === 0) found.push(required(at, "must have at least one node selector term"));
    found.push(...(terms ?? []).flatMap((term, index) => checkNodeTerm(`${at}[${index}]`, term)));
  }
  for (const [index, { weight, preference }] of (affinity[preferredTerms] ?? []).entries()) {
    const at = `${field}.${preferredTerms}[${index}]`;
    found.push(...checkWeight(at, weight), ...checkNodeTerm(`${at}.preference`, preference));
  }
  return found;
}

function checkNodeTerm(field: string, term: NodeSelectorTerm): Causes {
  return (term.matchExpressions ?? []).flatMap(({ key, operator, values = [] }, index) => {
    const at = `${field}.matchExpressions[${index}]`;
    const found: KubeStatusCause[] = [];
    if (operator === "In" || operator === "NotIn") {
      if (values.length === 0)
        found.push(required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    } else if (operator === "Gt" || operator === "Lt") {
      if (values.length !== 1)
        found.push(
          required(`${at}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'"),
        );
    } else if (operator !== "Exists" && operator !== "DoesNotExist") {
      found.push(invalidValue(`${at}.operator`, operator, "not a valid selector operator"));
    } else if (values.length > 0) {
      found.push(
        forbiddenField(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      );
    }
    return [...found, ...refuse(`${at}.key`, key, qualifiedNameProblems(key))];
  });
}

function checkPodAffinity(
  field: string,
  affinity:
    | { readonly [requiredTerms]?: PodAffinityTerm[]; readonly [preferredTerms]?: WeightedPodAffinityTerm[] }
    | undefined,
): Causes {
  if (affinity === undefined) return [];
  return [
    ...(affinity[requiredTerms] ?? []).flatMap((term, index) =>
      checkPodTerm(`${field}.${requiredTerms}[${index}]`, term),
    ),
    ...(affinity[preferredTerms] ?? []).flatMap(({ weight, podAffinityTerm }, index) => {
      const at = `${field}.${preferredTerms}[${index}]`;
      return [...checkWeight(at, weight), ...checkPodTerm(`${at}.podAffinityTerm`, podAffinityTerm)];
    }),
  ];
}

function checkPodTerm(field: string, term: PodAffinityTerm): Causes {
  const { topologyKey = "" } = term;
  return [
    ...checkLabelSelector(`${field}.labelSelector`, term.labelSelector),
    ...checkLabelSelector(`${field}.namespaceSelector`, term.namespaceSelector),
    ...(term.namespaces ?? []).flatMap((name) => refuse(`${field}.namespace`, name, dnsLabelProblems(name))),
    ...(topologyKey === "" ? [required(`${field}.topologyKey`, "can not be empty")] : []),
    ...refuse(`${field}.topologyKey`, topologyKey, qualifiedNameProblems(topologyKey)),
  ];
}

function checkWeight(field: string, weight: number): Causes {
  return weight >= 1 && weight <= 100
    ? []
    : [invalidValue(`${field}.weight`, weight, "must be in the range 1-100")];
}
