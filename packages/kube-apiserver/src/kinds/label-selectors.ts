// Validates and evaluates label selectors of objects (matchLabels, matchExpressions).
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import { forbiddenField, invalidValue, required } from "../causes.ts";
import { matchesLabelSelector, printLabelSelector } from "../selectors.ts";
import { type Causes, checkLabels, refuse } from "./field-checks.ts";
import { labelValueProblems, qualifiedNameProblems } from "./names.ts";

type Labels = Readonly<Record<string, string>>;
type Requirement = NonNullable<LabelSelector["matchExpressions"]>[number];

export function checkLabelSelector(field: string, selector: LabelSelector | undefined): Causes {
  if (selector === undefined) return [];
  return [
    ...checkLabels(`${field}.matchLabels`, selector.matchLabels),
    ...(selector.matchExpressions ?? []).flatMap((requirement, index) =>
      checkRequirement(`${field}.matchExpressions[${index}]`, requirement),
    ),
  ];
}

function checkRequirement(field: string, { key, operator, values = [] }: Requirement): Causes {
  const found = [...checkOperator(field, operator, values)];
  found.push(...refuse(`${field}.key`, key, qualifiedNameProblems(key)));
  found.push(
    ...values.flatMap((value, index) =>
      refuse(`${field}.values[${index}]`, value, labelValueProblems(value)),
    ),
  );
  return found;
}

function checkOperator(field: string, operator: string, values: readonly string[]): Causes {
  switch (operator) {
    case "In":
    case "NotIn":
      return values.length > 0
        ? []
        : [required(`${field}.values`, "must be specified when `operator` is 'In' or 'NotIn'")];
    case "Exists":
    case "DoesNotExist":
      return values.length === 0
        ? []
        : [
            forbiddenField(
              `${field}.values`,
              "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            ),
          ];
    default:
      return [invalidValue(`${field}.operator`, operator, "not a valid selector operator")];
  }
}

/** An absent selector matches nothing, an empty one everything. */
export function selectorMatches(selector: LabelSelector | undefined, labels: Labels | undefined): boolean {
  return selector !== undefined && matchesLabelSelector(selector, labels ?? {});
}

export function isEmptySelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0;
}

/** As kubectl shows it: "<none>" for an empty selector. */
export function selectorText(selector: LabelSelector | undefined): string {
  return printLabelSelector(selector ?? {}) || "<none>";
}
