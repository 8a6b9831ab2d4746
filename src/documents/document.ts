// What a document says, as the control plane takes it.
import type { ApplyCiliumNetworkPolicy } from "../gen/ctrl/v1/cilium_network_policy_pb.ts";
import type { ApplyDeployment } from "../gen/ctrl/v1/deployment_pb.ts";
import type { ApplySentinel } from "../gen/ctrl/v1/sentinel_pb.ts";

export type Document = DocumentContent & {
  /** Where it belongs, if it says so. */
  readonly region?: string;
  readonly source: DocumentSource;
};

export type DocumentContent =
  | { readonly kind: "deployment"; readonly spec: ApplyDeployment }
  | { readonly kind: "sentinel"; readonly spec: ApplySentinel }
  | {
      readonly kind: "policy";
      readonly spec: ApplyCiliumNetworkPolicy;
      /** The deployment that it belongs to and is deleted with; empty for none. */
      readonly deploymentId: string;
    }
  | { readonly kind: "environment"; readonly spec: EnvironmentSpec };

export interface EnvironmentSpec {
  readonly id: string;
  readonly workspaceId: string;
  readonly projectId: string;
}

export interface DocumentSource {
  readonly file: string;
  /** Where the document begins, from 1. */
  readonly line: number;
}

export function idOf(document: DocumentContent): string {
  switch (document.kind) {
    case "deployment":
      return document.spec.deploymentId;
    case "sentinel":
      return document.spec.sentinelId;
    case "policy":
      return document.spec.ciliumNetworkPolicyId;
    case "environment":
      return document.spec.id;
  }
}
