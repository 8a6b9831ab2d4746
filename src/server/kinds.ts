// The three kinds of desired state, as one table: what is the same for all of them is
// written once in the store and the streams, and what differs is here.
import { clone, create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type ApplyCiliumNetworkPolicy,
  ApplyCiliumNetworkPolicySchema,
  type CiliumNetworkPolicyState,
  CiliumNetworkPolicyStateSchema,
} from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import {
  type ApplyDeployment,
  ApplyDeploymentSchema,
  type DeploymentState,
  DeploymentStateSchema,
} from "../gen/ctrl/v1/deployment_pb.ts";
import {
  type ApplySentinel,
  ApplySentinelSchema,
  type SentinelState,
  SentinelStateSchema,
} from "../gen/ctrl/v1/sentinel_pb.ts";

interface KindTypes {
  deployment: { spec: ApplyDeployment; schema: typeof ApplyDeploymentSchema; state: DeploymentState };
  sentinel: { spec: ApplySentinel; schema: typeof ApplySentinelSchema; state: SentinelState };
  policy: {
    spec: ApplyCiliumNetworkPolicy;
    schema: typeof ApplyCiliumNetworkPolicySchema;
    state: CiliumNetworkPolicyState;
  };
}

export type Kind = keyof KindTypes;

/** In the order in which objects are listed. */
export const allKinds = ["deployment", "sentinel", "policy"] as const satisfies readonly Kind[];

export type Spec<K extends Kind> = KindTypes[K]["spec"];
export type SpecInit<K extends Kind> = MessageInitShape<KindTypes[K]["schema"]>;
export type State<K extends Kind> = KindTypes[K]["state"];

export interface KindTable<K extends Kind> {
  /** A copy of its own, so that nobody can change a row from outside. */
  createSpec(init: SpecInit<K>): Spec<K>;
  /** Fields that this version does not know go through both ways. */
  encodeSpec(spec: Spec<K>): Uint8Array;
  /** Throws on what is not a spec. */
  decodeSpec(bytes: Uint8Array): Spec<K>;
  idOf(spec: Spec<K>): string;
  /** What no other row of this kind may have within a region. */
  nameOf(spec: Spec<K>): string;
  applyState(spec: Spec<K>, version: bigint): State<K>;
  deleteState(spec: Spec<K>, version: bigint): State<K>;
  /** Only moves the cursor of a client. */
  bareState(version: bigint): State<K>;
}

export const kinds: { readonly [K in Kind]: KindTable<K> } = {
  deployment: {
    createSpec: (init) => clone(ApplyDeploymentSchema, create(ApplyDeploymentSchema, init)),
    encodeSpec: (spec) => toBinary(ApplyDeploymentSchema, spec),
    decodeSpec: (bytes) => fromBinary(ApplyDeploymentSchema, bytes),
    idOf: (spec) => spec.deploymentId,
    // Reports carry the name without its namespace, so the name alone has to do.
    nameOf: (spec) => spec.k8sName,
    applyState: (value, version) =>
      create(DeploymentStateSchema, { state: { case: "apply", value }, version }),
    deleteState: ({ k8sNamespace, k8sName }, version) =>
      create(DeploymentStateSchema, {
        state: { case: "delete", value: { k8sNamespace, k8sName } },
        version,
      }),
    bareState: (version) => create(DeploymentStateSchema, { version }),
  },
  sentinel: {
    createSpec: (init) => clone(ApplySentinelSchema, create(ApplySentinelSchema, init)),
    encodeSpec: (spec) => toBinary(ApplySentinelSchema, spec),
    decodeSpec: (bytes) => fromBinary(ApplySentinelSchema, bytes),
    idOf: (spec) => spec.sentinelId,
    nameOf: (spec) => spec.k8sName,
    applyState: (value, version) => create(SentinelStateSchema, { state: { case: "apply", value }, version }),
    deleteState: ({ k8sName }, version) =>
      create(SentinelStateSchema, { state: { case: "delete", value: { k8sName } }, version }),
    bareState: (version) => create(SentinelStateSchema, { version }),
  },
  policy: {
    createSpec: (init) => clone(ApplyCiliumNetworkPolicySchema, create(ApplyCiliumNetworkPolicySchema, init)),
    encodeSpec: (spec) => toBinary(ApplyCiliumNetworkPolicySchema, spec),
    decodeSpec: (bytes) => fromBinary(ApplyCiliumNetworkPolicySchema, bytes),
    idOf: (spec) => spec.ciliumNetworkPolicyId,
    nameOf: (spec) => `${spec.k8sNamespace}/${spec.k8sName}`,
    applyState: (value, version) =>
      create(CiliumNetworkPolicyStateSchema, { state: { case: "apply", value }, version }),
    deleteState: ({ k8sNamespace, k8sName }, version) =>
      create(CiliumNetworkPolicyStateSchema, {
        state: { case: "delete", value: { k8sNamespace, k8sName } },
        version,
      }),
    bareState: (version) => create(CiliumNetworkPolicyStateSchema, { version }),
  },
};
