// PodDisruptionBudgets (policy/v1).
import type { PodDisruptionBudget } from "kubernetes-types/policy/v1.js";
import { invalidValue, unsupported } from "../causes.ts";
import { type Column, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { type Causes, checkCountOrPercent } from "./field-checks.ts";
import { checkLabelSelector } from "./label-selectors.ts";

const evictionPolicies = ["AlwaysAllow", "IfHealthyBudget"];

const columns: Column<PodDisruptionBudget>[] = [
  nameColumn,
  {
    name: "Min Available",
    type: "string",
    description: "The minimum number of pods that must be available.",
    cell: ({ spec }) => String(spec?.minAvailable ?? "N/A"),
  },
  {
    name: "Max Unavailable",
    type: "string",
    description: "The maximum number of pods that may be unavailable.",
    cell: ({ spec }) => String(spec?.maxUnavailable ?? "N/A"),
  },
  {
    name: "Allowed Disruptions",
    type: "integer",
    description: "Calculated number of pods that may be disrupted at this time.",
    cell: ({ status }) => status?.disruptionsAllowed ?? 0,
  },
  ageColumn,
];

export const poddisruptionbudgets = defineResource<PodDisruptionBudget>({
  kind: {
    group: "policy",
    version: "v1",
    kind: "PodDisruptionBudget",
    plural: "poddisruptionbudgets",
    namespaced: true,
  },
  singular: "poddisruptionbudget",
  shortNames: ["pdb"],
  categories: [],
  schema: "io.k8s.api.policy.v1.PodDisruptionBudget",
  statusSubresource: true,
  unconditionalUpdate: false,
  generationPaths: [["spec"]],
  columns,

  prepareCreate(budget) {
    budget.status = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
  },
  validate: checkBudget,
});

function checkBudget({ spec = {} }: PodDisruptionBudget): Causes {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy: policy } = spec;
  return [
    ...checkOneBound(spec),
    ...checkCountOrPercent("spec.minAvailable", minAvailable, { percentMax: 100 }),
    ...checkCountOrPercent("spec.maxUnavailable", maxUnavailable, { percentMax: 100 }),
    ...checkLabelSelector("spec.selector", selector),
    ...(policy === undefined || evictionPolicies.includes(policy)
      ? []
      : [unsupported("spec.unhealthyPodEvictionPolicy", policy, evictionPolicies)]),
  ];
}

function checkOneBound(spec: NonNullable<PodDisruptionBudget["spec"]>): Causes {
  const { minAvailable, maxUnavailable, selector, unhealthyPodEvictionPolicy } = spec;
  if (minAvailable === undefined || maxUnavailable === undefined) return [];
  // The real server prints its whole struct here.
  const shown = {
    MinAvailable: minAvailable,
    Selector: selector ?? null,
    MaxUnavailable: maxUnavailable,
    UnhealthyPodEvictionPolicy: unhealthyPodEvictionPolicy ?? null,
  };
  return [invalidValue("spec", shown, "minAvailable and maxUnavailable cannot be both set")];
}
