// The descriptor of policies. A policy is a CiliumNetworkPolicy with the rules of the control plane. Its controller is
// called `cilium` on the wire, in metrics and in logs.
import {
  ApplyCiliumNetworkPolicySchema,
  CiliumNetworkPolicyStateSchema,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { ClusterService } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import { ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { ciliumNetworkPolicies } from "../../kube/resources.ts";
import { labelKeys, managedBy } from "../../model/labels.ts";
import { type ClusterCall, keep } from "../cluster-call.ts";
import type { Kind } from "../kind.ts";
import { type KindView, noPods } from "../kind-view.ts";
import { type PolicySpec, parseApplyPolicy, parseDeletePolicy } from "./spec.ts";

/** How the CLI shows a policy. It has no pods and no status reports. */
const policyView: KindView = {
  columns: ["id", "name", "phase", "deployment", "version", "reason"],
  podsOf: () => noPods,
  listedPods: () => [],
  reportedAtMs: () => undefined,
  wantedText: ({ spec }) => (spec?.spec.case === "policy" ? "a network policy" : ""),
  liveText: () => "",
  differencesOf: () => [],
  stillExists: () => false,
  isRollingOut: () => false,
};

/** The permissions that an agent needs for this kind. */
const policyCalls: readonly ClusterCall[] = [
  {
    part: "agent",
    kind: ciliumNetworkPolicies,
    // Also those that krane applies for objects of other kinds.
    labelSelector: `${labelKeys.managedBy}=${managedBy}`,
    verbs: keep,
    why: "A policy says who may reach pods, and is there before they are.",
  },
];

const rpc = ClusterService.method;

export const policyKind: Kind<
  "policy",
  typeof CiliumNetworkPolicyStateSchema,
  never,
  PolicySpec,
  never,
  never
> = {
  name: "policy",
  plural: "policies",
  aliases: [],
  controller: "cilium",
  objectKind: ObjectKind.POLICY,
  kubectlKind: "ciliumnetworkpolicy",
  idLabel: labelKeys.networkPolicyId,
  makesPods: false,
  rpcs: {
    watch: rpc.watchCiliumNetworkPolicies,
    get: rpc.getDesiredCiliumNetworkPolicyState,
    idField: "ciliumNetworkPolicyId",
    digestKind: "policy",
  },
  applySchema: ApplyCiliumNetworkPolicySchema,
  stateSchema: CiliumNetworkPolicyStateSchema,
  idOf: ({ ciliumNetworkPolicyId }) => ciliumNetworkPolicyId,
  namespaceOf: ({ k8sNamespace }) => k8sNamespace,
  keyOf: ({ k8sNamespace, k8sName }) => `${k8sNamespace}/${k8sName}`,
  uniqueNameOf: ({ k8sNamespace, k8sName }) => `${k8sNamespace}/${k8sName}`,
  deletionOf: ({ k8sNamespace, k8sName }) => ({ k8sNamespace, k8sName }),
  owner: "deployment",
  parseApply: parseApplyPolicy,
  parseDelete: parseDeletePolicy,
  // The rules are stored with the order, because those on the live object may have been edited.
  longField: "policy",
  clusterCalls: policyCalls,
  view: policyView,
  loadDocument: async () => (await import("./document.ts")).policyDocument,
  async loadController() {
    const { Controller } = await import("../../engine/controller.ts");
    const { policyRecipe } = await import("./controller.ts");
    return (options, deps) => new Controller(policyKind, policyRecipe, options, deps);
  },
};
