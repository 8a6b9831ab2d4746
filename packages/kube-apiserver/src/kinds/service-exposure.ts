// Drops fields of a Service that its new type does not have.
//
// The server itself set most of these fields. A client that changes only the type did not set them, and must not get an
// error for them. If a client also changes such a field, validation reports why it does not fit.
import type { Service, ServiceSpec } from "kubernetes-types/core/v1.js";
import { equalJson } from "../json.ts";
import type { Draft } from "../resource.ts";

export function hasClusterIP({ type }: ServiceSpec): boolean {
  return type === "ClusterIP" || type === "NodePort" || type === "LoadBalancer";
}

export function isExposed(spec: ServiceSpec): boolean {
  return hasNodePorts(spec) || (spec.type === "ClusterIP" && (spec.externalIPs ?? []).length > 0);
}

/** On an update: drops the fields of the previous type that the new type does not have. */
export function dropOutgrown(service: Draft<Service>, previous: Service): void {
  const { spec } = service;
  const before = previous.spec;
  if (spec === undefined || before === undefined) return;
  const outgrows = (needs: (of: ServiceSpec) => boolean) => needs(before) && !needs(spec);
  if (outgrows(hasClusterIP)) {
    if (spec.clusterIP === before.clusterIP) dropUnchanged(spec, before, "clusterIPs");
    if (spec.clusterIPs === undefined) dropUnchanged(spec, before, "clusterIP");
    dropUnchanged(spec, before, "ipFamilies");
    dropUnchanged(spec, before, "ipFamilyPolicy");
  }
  if (outgrows(hasNodePorts) && !hasNewNodePorts(spec, before)) {
    for (const port of spec.ports ?? []) delete port.nodePort;
  }
  if (outgrows(isBalanced)) {
    dropUnchanged(spec, before, "allocateLoadBalancerNodePorts");
    dropUnchanged(spec, before, "loadBalancerClass");
  }
  if (outgrows(hasHealthPort)) dropUnchanged(spec, before, "healthCheckNodePort");
  if (outgrows(isExposed)) dropUnchanged(spec, before, "externalTrafficPolicy");
  if (!isBalanced(spec)) service.status = { ...service.status, loadBalancer: {} };
}

function dropUnchanged(spec: Draft<ServiceSpec>, before: ServiceSpec, field: keyof ServiceSpec): void {
  if (equalJson(spec[field], before[field])) delete spec[field];
}

function hasNodePorts({ type }: ServiceSpec): boolean {
  return type === "NodePort" || type === "LoadBalancer";
}

function hasNewNodePorts(spec: ServiceSpec, before: ServiceSpec): boolean {
  const known = new Set((before.ports ?? []).map(({ nodePort }) => nodePort));
  return (spec.ports ?? []).some(({ nodePort }) => nodePort && !known.has(nodePort));
}

function isBalanced({ type }: ServiceSpec): boolean {
  return type === "LoadBalancer";
}

function hasHealthPort(spec: ServiceSpec): boolean {
  return isBalanced(spec) && spec.externalTrafficPolicy === "Local";
}
