// The built-in kinds, in the order in which discovery lists them.
import { configmaps } from "./kinds/configmaps.ts";
import { customresourcedefinitions } from "./kinds/customresourcedefinitions.ts";
import { deployments } from "./kinds/deployments.ts";
import { events, newEvents } from "./kinds/events.ts";
import { leases } from "./kinds/leases.ts";
import { namespaces } from "./kinds/namespaces.ts";
import { nodes } from "./kinds/nodes.ts";
import { poddisruptionbudgets } from "./kinds/poddisruptionbudgets.ts";
import { pods } from "./kinds/pods.ts";
import { replicasets } from "./kinds/replicasets.ts";
import { selfsubjectaccessreviews, subjectaccessreviews, tokenreviews } from "./kinds/reviews.ts";
import { runtimeclasses } from "./kinds/runtimeclasses.ts";
import { secrets } from "./kinds/secrets.ts";
import { serviceaccounts } from "./kinds/serviceaccounts.ts";
import { services } from "./kinds/services.ts";
import type { ServedResource } from "./resource.ts";

export const builtinResources: readonly ServedResource[] = [
  configmaps,
  events,
  namespaces,
  nodes,
  pods,
  secrets,
  serviceaccounts,
  services,
  deployments,
  replicasets,
  customresourcedefinitions,
  tokenreviews,
  selfsubjectaccessreviews,
  subjectaccessreviews,
  leases,
  newEvents,
  runtimeclasses,
  poddisruptionbudgets,
];
