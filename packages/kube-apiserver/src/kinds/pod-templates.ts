// Validation that ReplicaSets and apps/v1 Deployments share: the selector and the pod template.
import type { PodTemplateSpec } from "kubernetes-types/core/v1.js";
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import { forbiddenField, immutable, invalidValue, required, unsupported } from "../causes.ts";
import { equalJson } from "../json.ts";
import type { Column, Draft } from "../resource.ts";
import type { KubeObject, KubeStatusCause } from "../types.ts";
import { type Causes, checkAnnotations, checkLabels, checkNonNegative } from "./field-checks.ts";
import { checkLabelSelector, isEmptySelector, selectorMatches, selectorText } from "./label-selectors.ts";
import { defaultPodSpec } from "./pod-spec-defaults.ts";
import { checkPodSpec } from "./pod-spec-validation.ts";

export interface TemplatedSpec {
  readonly replicas?: number;
  readonly minReadySeconds?: number;
  readonly selector?: LabelSelector;
  readonly template?: PodTemplateSpec;
}

export function defaultTemplate(template: Draft<PodTemplateSpec> | undefined): void {
  if (template?.spec !== undefined) defaultPodSpec(template.spec);
}

export function checkSelector(field: string, selector: LabelSelector | null | undefined): Causes {
  if (!selector) return [required(field)];
  const found: KubeStatusCause[] = [...checkLabelSelector(field, selector)];
  if (found.length > 0) found.push(invalidValue(field, shown(selector), "invalid label selector"));
  else if (isEmptySelector(selector))
    found.push(invalidValue(field, selector, "empty selector is invalid for deployment"));
  return found;
}

/** The selector must match the template's labels, because otherwise pods would be created endlessly. */
export function checkTemplate(field: string, spec: TemplatedSpec): Causes {
  const { template } = spec;
  const selector = spec.selector ?? undefined;
  const { labels, annotations } = template?.metadata ?? {};
  const found: KubeStatusCause[] = [];
  const isUsable = selector === undefined || checkLabelSelector("", selector).length === 0;
  if (isUsable && !selectorMatches(selector, labels))
    found.push(
      invalidValue(`${field}.metadata.labels`, labels ?? null, "`selector` does not match template `labels`"),
    );
  found.push(
    ...checkLabels(`${field}.labels`, labels),
    ...checkAnnotations(`${field}.annotations`, annotations),
    ...checkPodSpec(`${field}.spec`, template?.spec),
  );
  const { restartPolicy, activeDeadlineSeconds } = template?.spec ?? {};
  if (restartPolicy === "OnFailure" || restartPolicy === "Never")
    found.push(unsupported(`${field}.spec.restartPolicy`, restartPolicy, ["Always"]));
  if (activeDeadlineSeconds !== undefined)
    found.push(
      forbiddenField(
        `${field}.spec.activeDeadlineSeconds`,
        "activeDeadlineSeconds in ReplicaSet is not Supported",
      ),
    );
  return found;
}

export function checkSameSelector(
  selector: LabelSelector | undefined,
  previous: LabelSelector | undefined,
): Causes {
  return equalJson(selector, previous) ? [] : [immutable("spec.selector", selector ? shown(selector) : null)];
}

// In the field order of the real server.
function shown({ matchLabels, matchExpressions }: LabelSelector): unknown {
  return { matchLabels, matchExpressions };
}

/** The counts in a status must not exceed the number of replicas. */
export function checkCounts(counts: Readonly<Record<string, number | undefined>>): Causes {
  const replicas = counts["replicas"] ?? 0;
  return Object.entries(counts).flatMap(([name, count = 0]) => {
    const field = `status.${name}`;
    if (count < 0) return checkNonNegative(field, count);
    return count > replicas ? [invalidValue(field, count, "cannot be greater than status.replicas")] : [];
  });
}

export function templateColumns<T extends KubeObject & { readonly spec?: TemplatedSpec }>(): Column<T>[] {
  const containers = (object: T) => object.spec?.template?.spec?.containers ?? [];
  return [
    {
      name: "Containers",
      type: "string",
      priority: 1,
      description: "Names of each container in the template.",
      cell: (object) =>
        containers(object)
          .map(({ name }) => name)
          .join(","),
    },
    {
      name: "Images",
      type: "string",
      priority: 1,
      description: "Images referenced by each container in the template.",
      cell: (object) =>
        containers(object)
          .map(({ image }) => image ?? "")
          .join(","),
    },
    {
      name: "Selector",
      type: "string",
      priority: 1,
      description: "The label query that finds the pods.",
      cell: (object) => selectorText(object.spec?.selector),
    },
  ];
}
