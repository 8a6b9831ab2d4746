// ReplicaSets (apps/v1).
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { type Column, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { checkNonNegative } from "./field-checks.ts";
import {
  checkCounts,
  checkSameSelector,
  checkSelector,
  checkTemplate,
  defaultTemplate,
  templateColumns,
} from "./pod-templates.ts";

const columns: Column<ReplicaSet>[] = [
  nameColumn,
  {
    name: "Desired",
    type: "integer",
    description: "The number of desired pods.",
    cell: ({ spec }) => spec?.replicas ?? 0,
  },
  {
    name: "Current",
    type: "integer",
    description: "The most recently observed number of pods.",
    cell: ({ status }) => status?.replicas ?? 0,
  },
  {
    name: "Ready",
    type: "integer",
    description: "The number of pods with a Ready condition.",
    cell: ({ status }) => status?.readyReplicas ?? 0,
  },
  ageColumn,
  ...templateColumns<ReplicaSet>(),
];

export const replicasets = defineResource<ReplicaSet>({
  kind: { group: "apps", version: "v1", kind: "ReplicaSet", plural: "replicasets", namespaced: true },
  singular: "replicaset",
  shortNames: ["rs"],
  categories: ["all"],
  schema: "io.k8s.api.apps.v1.ReplicaSet",
  statusSubresource: true,
  scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
  generationPaths: [["spec"]],
  selectableFields: { "status.replicas": (replicaSet) => String(replicaSet.status?.replicas ?? 0) },
  columns,

  defaults({ spec }) {
    if (spec === undefined) return;
    spec.replicas ??= 1;
    defaultTemplate(spec.template);
  },
  prepareCreate(replicaSet) {
    replicaSet.status = { replicas: 0 };
  },
  validate: ({ spec = {} as NonNullable<ReplicaSet["spec"]> }) => [
    ...checkNonNegative("spec.replicas", spec.replicas),
    ...checkNonNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...checkSelector("spec.selector", spec.selector),
    ...checkTemplate("spec.template", spec),
  ],
  validateUpdate: ({ spec }, previous) => checkSameSelector(spec?.selector, previous.spec?.selector),
  validateStatusUpdate: ({ status }) =>
    checkCounts({
      replicas: status?.replicas,
      fullyLabeledReplicas: status?.fullyLabeledReplicas,
      readyReplicas: status?.readyReplicas,
      availableReplicas: status?.availableReplicas,
    }),
});
