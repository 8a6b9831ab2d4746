// Nodes. A new node is tainted until its kubelet reports it as ready.
import type { Node, NodeSpec } from "kubernetes-types/core/v1.js";
import { duplicate, forbiddenField, invalidValue, required, unsupported } from "../causes.ts";
import { type Column, type Draft, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, refuse } from "./field-checks.ts";
import { labelValueProblems, qualifiedNameProblems } from "./names.ts";
import { taintEffects } from "./scheduling-validation.ts";

const notReadyTaint = { key: "node.kubernetes.io/not-ready", effect: "NoSchedule" } as const;
const roleLabel = "node-role.kubernetes.io/";

const columns: Column<Node>[] = [
  nameColumn,
  { name: "Status", type: "string", description: "The status of the node", cell: statusText },
  { name: "Roles", type: "string", description: "The roles of the node", cell: rolesText },
  ageColumn,
  {
    name: "Version",
    type: "string",
    description: "Kubelet Version reported by the node.",
    cell: ({ status }) => status?.nodeInfo?.kubeletVersion ?? "",
  },
  wide("Internal-IP", (node) => addressOf(node, "InternalIP")),
  wide("External-IP", (node) => addressOf(node, "ExternalIP")),
  wide("OS-Image", ({ status }) => status?.nodeInfo?.osImage || "<unknown>"),
  wide("Kernel-Version", ({ status }) => status?.nodeInfo?.kernelVersion || "<unknown>"),
  wide("Container-Runtime", ({ status }) => status?.nodeInfo?.containerRuntimeVersion || "<unknown>"),
];

export const nodes = defineResource<Node>({
  kind: { group: "", version: "v1", kind: "Node", plural: "nodes", namespaced: false },
  singular: "node",
  shortNames: ["no"],
  categories: [],
  schema: "io.k8s.api.core.v1.Node",
  statusSubresource: true,
  selectableFields: { "spec.unschedulable": ({ spec }) => String(spec?.unschedulable ?? false) },
  columns,

  defaults(node) {
    const { status, spec } = node;
    if (status?.capacity !== undefined) status.allocatable ??= { ...status.capacity };
    if (spec?.podCIDR !== undefined) spec.podCIDRs ??= [spec.podCIDR];
  },
  admit(node, previous) {
    if (previous !== undefined) return;
    const taints = node.spec?.taints ?? [];
    if (taints.some(({ key, effect }) => key === notReadyTaint.key && effect === notReadyTaint.effect))
      return;
    node.spec = { ...node.spec, taints: [...taints, { ...notReadyTaint }] };
  },
  prepareCreate(node) {
    node.status = {
      ...node.status,
      daemonEndpoints: { kubeletEndpoint: { Port: 0 } },
      nodeInfo: node.status?.nodeInfo ?? unknownNode(),
    };
  },
  validate: ({ spec = {} }) => [...checkTaints(spec.taints ?? []), ...checkRanges(spec)],
  validateUpdate: ({ spec }, previous) =>
    previous.spec?.podCIDR && spec?.podCIDR !== previous.spec.podCIDR
      ? [forbiddenField("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')]
      : [],
});

function wide(name: string, cell: (node: Node) => string): Column<Node> {
  return { name, type: "string", priority: 1, cell };
}

function unknownNode(): Draft<NonNullable<NonNullable<Node["status"]>["nodeInfo"]>> {
  return {
    machineID: "",
    systemUUID: "",
    bootID: "",
    kernelVersion: "",
    osImage: "",
    containerRuntimeVersion: "",
    kubeletVersion: "",
    kubeProxyVersion: "",
    operatingSystem: "",
    architecture: "",
  };
}

function statusText({ spec, status }: Node): string {
  const ready = (status?.conditions ?? []).find(({ type }) => type === "Ready");
  const words = [ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady"];
  if (spec?.unschedulable === true) words.push("SchedulingDisabled");
  return words.join(",");
}

function rolesText({ metadata }: Node): string {
  const roles = Object.keys(metadata?.labels ?? {})
    .filter((label) => label.startsWith(roleLabel))
    .map((label) => label.slice(roleLabel.length));
  return roles.sort().join(",") || "<none>";
}

function addressOf({ status }: Node, wanted: string): string {
  return (status?.addresses ?? []).find(({ type }) => type === wanted)?.address ?? "<none>";
}

// The real server reports taints under metadata, although they are in the spec.
function checkTaints(taints: NonNullable<NodeSpec["taints"]>): Causes {
  const seen = new Set<string>();
  return taints.flatMap(({ key = "", value = "", effect = "" }, index) => {
    const at = `metadata.taints[${index}]`;
    const found: KubeStatusCause[] = [
      ...refuse(`${at}.key`, key, qualifiedNameProblems(key)),
      ...refuse(`${at}.value`, value, labelValueProblems(value)),
    ];
    if (effect === "") found.push(required(`${at}.effect`));
    else if (!taintEffects.includes(effect)) found.push(unsupported(`${at}.effect`, effect, taintEffects));
    if (seen.has(`${key}:${effect}`)) {
      const cause = duplicate(at, { Key: key, Value: value, Effect: effect, TimeAdded: null });
      found.push({ ...cause, message: `${cause.message}: taints must be unique by key and effect pair` });
    }
    seen.add(`${key}:${effect}`);
    return found;
  });
}

function checkRanges({ podCIDRs = [] }: NodeSpec): Causes {
  return podCIDRs.flatMap((range, index) =>
    /^[0-9a-f.:]+\/\d{1,3}$/i.test(range)
      ? []
      : [
          invalidValue(
            `spec.podCIDRs[${index}]`,
            range,
            "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
          ),
        ],
  );
}
