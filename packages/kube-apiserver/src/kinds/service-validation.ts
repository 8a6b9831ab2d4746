// Validates services.
import { isIP } from "node:net";
import type { Service, ServicePort, ServiceSpec } from "kubernetes-types/core/v1.js";
import { duplicate, forbiddenField, invalidValue, required, unsupported } from "../causes.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, checkLabels, checkPort, checkPortOrName, refuse } from "./field-checks.ts";
import { dnsLabelProblems, dnsSubdomainProblems } from "./names.ts";
import { hasClusterIP, isExposed } from "./service-exposure.ts";

const protocols = ["SCTP", "TCP", "UDP"];
const types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const affinities = ["ClientIP", "None"];
const policies = ["Cluster", "Local"];
const ipText = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

export function checkService({ spec = {} }: Service): Causes {
  const { ports = [], type = "", clusterIP = "" } = spec;
  const found: KubeStatusCause[] = [];
  if (ports.length === 0 && clusterIP !== "None" && type !== "ExternalName")
    found.push(required("spec.ports"));
  if (type === "ExternalName") found.push(...checkExternalName(spec));
  found.push(...checkPorts(ports, type));
  found.push(...checkLabels("spec.selector", spec.selector));
  found.push(...oneOf("spec.sessionAffinity", spec.sessionAffinity, affinities));
  found.push(...checkAddresses(spec));
  found.push(
    ...(spec.externalIPs ?? []).flatMap((ip, index) => checkExternalIP(`spec.externalIPs[${index}]`, ip)),
  );
  found.push(...oneOf("spec.type", type, types));
  found.push(...checkPolicies(spec));
  return found;
}

function oneOf(field: string, value: string | undefined, allowed: readonly string[]): Causes {
  return value === undefined || allowed.includes(value) ? [] : [unsupported(field, value, allowed)];
}

function checkPorts(ports: readonly ServicePort[], type: string): Causes {
  const names = new Set<string>();
  const numbers = new Set<string>();
  return ports.flatMap((port, index) => {
    const at = `spec.ports[${index}]`;
    const { name = "", protocol = "TCP", targetPort = port.port, nodePort = 0 } = port;
    const found: KubeStatusCause[] = [];
    if (name === "" && ports.length > 1) found.push(required(`${at}.name`));
    else if (name !== "") {
      found.push(...refuse(`${at}.name`, name, dnsLabelProblems(name)));
      if (names.has(name)) found.push(duplicate(`${at}.name`, name));
      names.add(name);
    }
    found.push(...checkPort(`${at}.port`, port.port));
    found.push(...oneOf(`${at}.protocol`, protocol, protocols));
    found.push(...checkPortOrName(`${at}.targetPort`, targetPort));
    if (nodePort !== 0 && type === "ClusterIP")
      found.push(forbiddenField(`${at}.nodePort`, "may not be used when `type` is 'ClusterIP'"));
    const key = `${protocol}/${port.port}`;
    // The real server prints its struct with only the compared fields.
    if (numbers.has(key))
      found.push(
        duplicate(at, {
          Name: "",
          Protocol: protocol,
          AppProtocol: null,
          Port: port.port,
          TargetPort: 0,
          NodePort: 0,
        }),
      );
    numbers.add(key);
    return found;
  });
}

function checkAddresses(spec: ServiceSpec): Causes {
  const { type = "", clusterIP = "", clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = spec;
  if (type === "ExternalName") return [];
  const found: KubeStatusCause[] = [];
  if (clusterIPs.length > 0 && clusterIPs[0] !== clusterIP)
    found.push(invalidValue("spec.clusterIPs", clusterIPs, "first value must match `clusterIP`"));
  for (const [index, ip] of clusterIPs.entries()) {
    const at = `spec.clusterIPs[${index}]`;
    if (ip === "None") {
      if (type !== "ClusterIP")
        found.push(invalidValue(at, ip, `may not be set to 'None' for ${type} services`));
    } else if (isIP(ip) === 0) found.push(invalidValue(at, ip, ipText));
  }
  if (clusterIP === "None") return found;
  if (ipFamilyPolicy === "RequireDualStack")
    found.push(
      invalidValue(
        "spec.ipFamilyPolicy",
        ipFamilyPolicy,
        "this cluster is not configured for dual-stack services",
      ),
    );
  for (const [index, family] of ipFamilies.entries()) {
    if (family !== "IPv4")
      found.push(invalidValue(`spec.ipFamilies[${index}]`, family, "not configured on this cluster"));
  }
  return found;
}

function checkExternalIP(field: string, ip: string): Causes {
  if (isIP(ip) === 0) return [invalidValue(field, ip, ipText)];
  return ip.startsWith("127.") || ip === "::1"
    ? [invalidValue(field, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)")]
    : [];
}

function checkExternalName(spec: ServiceSpec): Causes {
  const { externalName = "", clusterIPs = [], ipFamilies = [], ipFamilyPolicy } = spec;
  const why = "may not be set for ExternalName services";
  const host = externalName.replace(/\.$/, "");
  return [
    ...(clusterIPs.length > 0 ? [forbiddenField("spec.clusterIPs", why)] : []),
    ...(ipFamilies.length > 0 ? [forbiddenField("spec.ipFamilies", why)] : []),
    ...(ipFamilyPolicy === undefined ? [] : [forbiddenField("spec.ipFamilyPolicy", why)]),
    ...(host === ""
      ? [required("spec.externalName")]
      : refuse("spec.externalName", host, dnsSubdomainProblems(host))),
  ];
}

function checkPolicies(spec: ServiceSpec): Causes {
  const { type, externalTrafficPolicy, internalTrafficPolicy, allocateLoadBalancerNodePorts } = spec;
  return [
    ...(allocateLoadBalancerNodePorts !== undefined && type !== "LoadBalancer"
      ? [
          forbiddenField(
            "spec.allocateLoadBalancerNodePorts",
            "may only be used when `type` is 'LoadBalancer'",
          ),
        ]
      : []),
    ...(externalTrafficPolicy !== undefined && !isExposed(spec)
      ? [
          invalidValue(
            "spec.externalTrafficPolicy",
            externalTrafficPolicy,
            "may only be set for externally-accessible services",
          ),
        ]
      : oneOf("spec.externalTrafficPolicy", externalTrafficPolicy, policies)),
    ...oneOf("spec.internalTrafficPolicy", internalTrafficPolicy, policies),
  ];
}

export function checkServiceUpdate({ spec = {} }: Service, previous: Service): Causes {
  const before = previous.spec ?? {};
  if (!hasClusterIP(spec) || !hasClusterIP(before) || !before.clusterIP) return [];
  return spec.clusterIP === before.clusterIP
    ? []
    : [invalidValue("spec.clusterIPs[0]", spec.clusterIPs ?? [], "may not change once set")];
}
