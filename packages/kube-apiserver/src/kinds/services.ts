// Services. Their addresses come from one range and never change.
import type { Service, ServicePort, ServiceSpec } from "kubernetes-types/core/v1.js";
import { type Column, type Draft, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { allocateAddresses, keepAddresses } from "./service-addresses.ts";
import { dropOutgrown, isExposed } from "./service-exposure.ts";
import { checkService, checkServiceUpdate } from "./service-validation.ts";

const affinitySeconds = 10_800;

const columns: Column<Service>[] = [
  nameColumn,
  {
    name: "Type",
    type: "string",
    description: "How the service is exposed.",
    cell: ({ spec }) => spec?.type ?? "",
  },
  {
    name: "Cluster-IP",
    type: "string",
    description: "The address of the service inside the cluster.",
    cell: ({ spec }) => spec?.clusterIP ?? "<none>",
  },
  {
    name: "External-IP",
    type: "string",
    description: "Addresses for which nodes also accept traffic for this service.",
    cell: externalText,
  },
  {
    name: "Port(s)",
    type: "string",
    description: "The list of ports that are exposed by this service.",
    cell: ({ spec }) => (spec?.ports ?? []).map(portText).join(",") || "<none>",
  },
  ageColumn,
  {
    name: "Selector",
    type: "string",
    priority: 1,
    description: "The labels of the pods that get the traffic.",
    cell: ({ spec }) =>
      Object.entries(spec?.selector ?? {})
        .map(([key, value]) => `${key}=${value}`)
        .sort()
        .join(",") || "<none>",
  },
];

export const services = defineResource<Service>({
  kind: { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true },
  singular: "service",
  shortNames: ["svc"],
  categories: ["all"],
  schema: "io.k8s.api.core.v1.Service",
  statusSubresource: true,
  createOnUpdate: true,
  deleteReturnsObject: true,
  nameRule: "label",
  selectableFields: {
    "spec.clusterIP": ({ spec }) => spec?.clusterIP ?? "",
    "spec.type": ({ spec }) => spec?.type ?? "",
  },
  columns,

  defaults({ spec }) {
    if (spec !== undefined) defaultService(spec);
  },
  prepareCreate(service, context) {
    service.status = { loadBalancer: {} };
    allocateAddresses(service, undefined, context);
  },
  prepareUpdate(service, previous, context) {
    dropOutgrown(service, previous);
    keepAddresses(service, previous);
    allocateAddresses(service, previous, context);
  },
  validate: checkService,
  validateUpdate: checkServiceUpdate,
});

function defaultService(spec: Draft<ServiceSpec>): void {
  spec.sessionAffinity ??= "None";
  spec.type ??= "ClusterIP";
  if (spec.sessionAffinity === "ClientIP") {
    spec.sessionAffinityConfig ??= { clientIP: { timeoutSeconds: affinitySeconds } };
  } else {
    delete spec.sessionAffinityConfig;
  }
  for (const port of spec.ports ?? []) {
    port.protocol ??= "TCP";
    port.targetPort ||= port.port;
  }
  if (isExposed(spec)) spec.externalTrafficPolicy ??= "Cluster";
  if (spec.type === "LoadBalancer") spec.allocateLoadBalancerNodePorts ??= true;
  if (spec.type !== "ExternalName") spec.internalTrafficPolicy ??= "Cluster";
}

function externalText({ spec, status }: Service): string {
  if (spec?.type === "ExternalName") return spec.externalName ?? "";
  const given = spec?.externalIPs ?? [];
  const ingress = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname ?? "");
  const all = [...ingress, ...given];
  if (all.length > 0) return all.join(",");
  return spec?.type === "LoadBalancer" ? "<pending>" : "<none>";
}

function portText({ port, nodePort, protocol }: ServicePort): string {
  return nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`;
}
