// apps/v1 Deployments.
import type { Deployment, DeploymentStrategy } from "kubernetes-types/apps/v1.js";
import { forbiddenField, invalidValue, unsupported } from "../causes.ts";
import { type Column, type Draft, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, checkCountOrPercent, checkNonNegative } from "./field-checks.ts";
import {
  checkCounts,
  checkSameSelector,
  checkSelector,
  checkTemplate,
  defaultTemplate,
  templateColumns,
} from "./pod-templates.ts";

const columns: Column<Deployment>[] = [
  nameColumn,
  {
    name: "Ready",
    type: "string",
    description: "Number of the pod with ready state",
    cell: ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`,
  },
  {
    name: "Up-to-date",
    type: "string",
    description: "Total number of pods that have the desired template.",
    cell: ({ status }) => status?.updatedReplicas ?? 0,
  },
  {
    name: "Available",
    type: "string",
    description: "Total number of pods that have been ready for at least minReadySeconds.",
    cell: ({ status }) => status?.availableReplicas ?? 0,
  },
  ageColumn,
  ...templateColumns<Deployment>(),
];

export const deployments = defineResource<Deployment>({
  kind: { group: "apps", version: "v1", kind: "Deployment", plural: "deployments", namespaced: true },
  singular: "deployment",
  shortNames: ["deploy"],
  categories: ["all"],
  schema: "io.k8s.api.apps.v1.Deployment",
  statusSubresource: true,
  statusKeepsLabels: true,
  scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
  // Annotations count too, because the revision of a rollback is in one.
  generationPaths: [["spec"], ["metadata", "annotations"]],
  columns,

  defaults({ spec }) {
    if (spec === undefined) return;
    spec.replicas ??= 1;
    spec.revisionHistoryLimit ??= 10;
    spec.progressDeadlineSeconds ??= 600;
    spec.strategy ??= {};
    defaultStrategy(spec.strategy);
    defaultTemplate(spec.template);
  },
  prepareCreate(deployment) {
    deployment.status = {};
  },
  validate: ({ spec = {} as NonNullable<Deployment["spec"]> }) => [
    ...checkNonNegative("spec.replicas", spec.replicas),
    ...checkSelector("spec.selector", spec.selector),
    ...checkTemplate("spec.template", spec),
    ...checkStrategy("spec.strategy", spec.strategy ?? {}),
    ...checkNonNegative("spec.minReadySeconds", spec.minReadySeconds),
    ...checkNonNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit),
    ...checkDeadline(spec),
  ],
  validateUpdate: ({ spec }, previous) => checkSameSelector(spec?.selector, previous.spec?.selector),
  validateStatusUpdate: ({ status }) =>
    checkCounts({
      replicas: status?.replicas,
      updatedReplicas: status?.updatedReplicas,
      readyReplicas: status?.readyReplicas,
      availableReplicas: status?.availableReplicas,
    }),
});

function defaultStrategy(strategy: Draft<DeploymentStrategy>): void {
  strategy.type ??= "RollingUpdate";
  if (strategy.type !== "RollingUpdate") return;
  strategy.rollingUpdate ??= {};
  strategy.rollingUpdate.maxUnavailable ??= "25%";
  strategy.rollingUpdate.maxSurge ??= "25%";
}

function checkStrategy(field: string, { type, rollingUpdate }: DeploymentStrategy): Causes {
  if (type === "Recreate") {
    return rollingUpdate === undefined
      ? []
      : [forbiddenField(`${field}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'")];
  }
  if (type !== "RollingUpdate") {
    // The real server prints its whole struct here instead of the type.
    return [
      unsupported(field, { Type: type, RollingUpdate: rollingUpdate ?? null }, ["Recreate", "RollingUpdate"]),
    ];
  }
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate ?? {};
  const at = `${field}.rollingUpdate`;
  const found: KubeStatusCause[] = [
    ...checkCountOrPercent(`${at}.maxUnavailable`, maxUnavailable, { percentMax: 100 }),
    ...checkCountOrPercent(`${at}.maxSurge`, maxSurge),
  ];
  if (isNothing(maxUnavailable) && isNothing(maxSurge))
    found.push(invalidValue(`${at}.maxUnavailable`, maxUnavailable, "may not be 0 when `maxSurge` is 0"));
  return found;
}

function isNothing(amount: number | string): boolean {
  return amount === 0 || amount === "0%";
}

function checkDeadline({
  progressDeadlineSeconds: deadline,
  minReadySeconds = 0,
}: NonNullable<Deployment["spec"]>): Causes {
  if (deadline === undefined) return [];
  const field = "spec.progressDeadlineSeconds";
  return [
    ...checkNonNegative(field, deadline),
    ...(deadline <= minReadySeconds
      ? [invalidValue(field, deadline, "must be greater than minReadySeconds")]
      : []),
  ];
}
