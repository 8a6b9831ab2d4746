// Allocates cluster IPs and node ports of services: at random, unique, kept on updates, and freed with the object.
import type { Service, ServiceSpec } from "kubernetes-types/core/v1.js";
import { invalidValue } from "../causes.ts";
import type { Draft, RequestContext } from "../resource.ts";
import { invalid } from "../status-error.ts";
import type { KubeObject } from "../types.ts";
import { hasClusterIP } from "./service-exposure.ts";

const serviceResource = { group: "", plural: "services" };
const range = { prefix: "10.96.", cidr: "10.96.0.0/16", size: 2 ** 16 };
const nodePorts = { first: 30_000, count: 2_768 };

/** Keeps the addresses if an update does not set them. */
export function keepAddresses(service: Draft<Service>, previous: Service): void {
  const { spec } = service;
  const before = previous.spec;
  if (spec === undefined || before === undefined) return;
  if (!hasClusterIP(spec) || !hasClusterIP(before)) return;
  if (!spec.clusterIP && before.clusterIP) spec.clusterIP = before.clusterIP;
  const isOnlyFirstChanged = spec.clusterIP !== before.clusterIP && spec.clusterIPs?.[0] === before.clusterIP;
  if ((spec.clusterIPs ?? []).length === 0 || isOnlyFirstChanged) {
    spec.clusterIPs = spec.clusterIP ? [spec.clusterIP] : [];
  }
  if (before.ipFamilies !== undefined) spec.ipFamilies ??= [...before.ipFamilies];
  if (before.ipFamilyPolicy !== undefined) spec.ipFamilyPolicy ??= before.ipFamilyPolicy;
  for (const [index, port] of (spec.ports ?? []).entries()) {
    const nodePort = before.ports?.[index]?.nodePort;
    if (needsNodePorts(spec) && !port.nodePort && nodePort) port.nodePort = nodePort;
  }
}

export function allocateAddresses(
  service: Draft<Service>,
  previous: Service | undefined,
  context: RequestContext,
): void {
  const { spec } = service;
  if (spec === undefined) return;
  if (spec.clusterIP && spec.clusterIPs === undefined) spec.clusterIPs = [spec.clusterIP];
  if (!hasClusterIP(spec)) return;
  const others = (context.readAll(serviceResource, "") as readonly Service[]).filter(
    ({ metadata }) =>
      metadata?.name !== service.metadata?.name || metadata?.namespace !== service.metadata?.namespace,
  );
  const taken = new Set(others.flatMap((other) => other.spec?.clusterIPs ?? []));
  if (!spec.clusterIP) {
    spec.clusterIP = freeAddress(taken, context.random);
    spec.clusterIPs = [spec.clusterIP];
  } else if (previous === undefined && isAddress(spec.clusterIP)) {
    refuseTaken(service, spec.clusterIP, taken);
  }
  giveFamilies(spec);
  if (needsNodePorts(spec)) giveNodePorts(spec, others, context.random);
}

// A headless service without a selector may have both families.
function giveFamilies(spec: Draft<ServiceSpec>): void {
  const isOpen = spec.clusterIP === "None" && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilies ??= isOpen ? ["IPv4", "IPv6"] : ["IPv4"];
  spec.ipFamilyPolicy ??= isOpen ? "RequireDualStack" : "SingleStack";
}

function isAddress(text: string): boolean {
  return /^\d+\.\d+\.\d+\.\d+$/.test(text);
}

function refuseTaken(service: KubeObject, address: string, taken: ReadonlySet<string>): void {
  const why = address.startsWith(range.prefix)
    ? taken.has(address)
      ? "provided IP is already allocated"
      : undefined
    : `the provided IP (${address}) is not in the valid range. The range of valid IPs is ${range.cidr}`;
  if (why === undefined) return;
  throw invalid({ group: "", kind: "Service" }, service.metadata?.name ?? "", [
    invalidValue("spec.clusterIPs", [address], `failed to allocate IP ${address}: ${why}`),
  ]);
}

function freeAddress(taken: ReadonlySet<string>, random: () => number): string {
  // The first and the last address of a network are reserved.
  const hosts = range.size - 2;
  const start = Math.floor(random() * hosts);
  for (let step = 0; step < hosts; step++) {
    const host = 1 + ((start + step) % hosts);
    const address = `${range.prefix}${host >> 8}.${host & 255}`;
    if (!taken.has(address)) return address;
  }
  throw new Error("every service address is taken");
}

function needsNodePorts({ type, allocateLoadBalancerNodePorts = true }: ServiceSpec): boolean {
  return type === "NodePort" || (type === "LoadBalancer" && allocateLoadBalancerNodePorts);
}

function giveNodePorts(spec: Draft<ServiceSpec>, others: readonly Service[], random: () => number): void {
  const taken = new Set(others.flatMap((other) => (other.spec?.ports ?? []).map(({ nodePort }) => nodePort)));
  for (const { nodePort } of spec.ports ?? []) taken.add(nodePort);
  for (const port of spec.ports ?? []) {
    if (port.nodePort) continue;
    const start = Math.floor(random() * nodePorts.count);
    for (let step = 0; step < nodePorts.count && !port.nodePort; step++) {
      const candidate = nodePorts.first + ((start + step) % nodePorts.count);
      if (!taken.has(candidate)) port.nodePort = candidate;
    }
    taken.add(port.nodePort);
  }
}
