// Builds the CiliumNetworkPolicy that krane applies for a policy: the rules come from the control plane; krane sets
// the name, namespace and labels, and records the order if it did not come from the control plane's stream.
import type { KubeObject } from "../../kube/types.ts";
import { orderAnnotations } from "../../model/kept-order.ts";
import { components, labelKeys, ownLabels } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { ciliumPolicyKind, type PolicyRules, policyApiVersion } from "./policy-document.ts";
import type { PolicySpec } from "./spec.ts";

export interface DesiredPolicy extends KubeObject, PolicyRules {
  readonly metadata: {
    name: string;
    namespace: string;
    labels: Record<string, string>;
    annotations?: Record<string, string>;
  };
}

export function desiredPolicy({ namespace, name, policyId, rules, kept }: PolicySpec): DesiredPolicy {
  const annotations = orderAnnotations(kept);
  return withManifestHash<DesiredPolicy>({
    apiVersion: policyApiVersion,
    kind: ciliumPolicyKind,
    metadata: {
      name,
      namespace,
      labels: { [labelKeys.networkPolicyId]: policyId, ...ownLabels(components.ciliumNetworkPolicy) },
      ...(annotations && { annotations }),
    },
    ...rules,
  });
}
