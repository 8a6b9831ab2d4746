// What may still change in a pod once it exists: images, deadlines and added tolerations.
import type { Container, Pod, PodSpec, Toleration } from "kubernetes-types/core/v1.js";
import { forbiddenField, required } from "../causes.ts";
import { equalJson } from "../json.ts";
import type { KubeStatusCause } from "../types.ts";
import type { Causes } from "./field-checks.ts";

const onlyThese =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`," +
  "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations)," +
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

export function checkPodUpdate(pod: Pod, previous: Pod): Causes {
  const { spec } = pod;
  const before = previous.spec;
  if (spec === undefined || before === undefined) return [];
  for (const list of ["containers", "initContainers"] as const) {
    if ((spec[list] ?? []).length !== (before[list] ?? []).length)
      return [forbiddenField(`spec.${list}`, "pod updates may not add or remove containers")];
  }
  const found: KubeStatusCause[] = [
    ...checkImages("spec.containers", spec.containers),
    ...checkImages("spec.initContainers", spec.initContainers),
  ];
  if (!keepsTolerations(spec.tolerations, before.tolerations)) {
    const why = "existing toleration can not be modified except its tolerationSeconds";
    found.push(forbiddenField("spec.tolerations", why));
  }
  const isKept = equalJson(fixedPart(spec), fixedPart(before));
  if (!isKept) found.push(forbiddenField("spec", onlyThese));
  return found;
}

function checkImages(field: string, containers: readonly Container[] | undefined): Causes {
  return (containers ?? []).flatMap(({ image = "" }, index) =>
    image === "" ? [required(`${field}[${index}].image`)] : [],
  );
}

function keepsTolerations(now: readonly Toleration[] = [], before: readonly Toleration[] = []): boolean {
  const kept = new Set(now.map(withoutSeconds));
  return before.every((toleration) => kept.has(withoutSeconds(toleration)));
}

function withoutSeconds({ key, operator, value, effect }: Toleration): string {
  return JSON.stringify([key, operator, value, effect]);
}

function fixedPart(spec: PodSpec): unknown {
  const withoutImage = ({ image: _, ...container }: Container) => container;
  const {
    activeDeadlineSeconds: _deadline,
    tolerations: _tolerations,
    terminationGracePeriodSeconds: grace = 0,
    ...rest
  } = spec;
  return {
    ...rest,
    terminationGracePeriodSeconds: grace < 0 ? 1 : grace,
    containers: (spec.containers ?? []).map(withoutImage),
    initContainers: (spec.initContainers ?? []).map(withoutImage),
  };
}
