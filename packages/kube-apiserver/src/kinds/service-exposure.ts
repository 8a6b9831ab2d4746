// From where a Service can be reached, and what goes when it no longer is.
//
// Most of these fields were filled in by the server. A client that changes nothing but the
// type never spoke of them, and must not be refused for them; one that changes them as well
// meant them, and validation tells it why they do not fit.
import type { Service, ServiceSpec } from "kubernetes-types/core/v1.js";
import { equalJson } from "../json.ts";
import type { Draft } from "../resource.ts";

export function hasClusterIP({ type }: ServiceSpec): boolean {
  return type === "ClusterIP" || type === "NodePort" || type === "LoadBalancer";
}

export function isExposed(spec: ServiceSpec): boolean {
  return hasNodePorts(spec) || (spec.type === "ClusterIP" && (spec.externalIPs ?? []).length > 0);
}

/** On an update: drops what its former type brought and its new one has no use for. */
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
