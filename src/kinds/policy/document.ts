// Policy documents: the fields that users write, and the manifests that `krane render` shows for them.
import { create } from "@bufbuild/protobuf";
import { defineDocument, problemsOf } from "../../documents/document-kind.ts";
import { field } from "../../documents/fields.ts";
import { jsonObject, text } from "../../documents/formats.ts";
import {
  type ApplyCiliumNetworkPolicy,
  ApplyCiliumNetworkPolicySchema,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { collectProblems } from "../../model/field-problem.ts";
import { parseId } from "../../model/message-fields.ts";
import { desiredNamespace } from "../../model/namespace.ts";
import { type KindDocument, type ObjectContent, type Plain, required } from "../kind-document.ts";
import { desiredPolicy } from "./desired.ts";
import { type PolicySpec, parseApplyPolicy } from "./spec.ts";

type PolicyFields = Plain<ApplyCiliumNetworkPolicy> & { readonly deploymentId: string };

const schema = defineDocument<PolicyFields, ObjectContent<"policy", ApplyCiliumNetworkPolicy>>({
  word: "Policy",
  kind: "policy",
  holds: "A CiliumNetworkPolicy.",
  fields: [
    field("id", "ciliumNetworkPolicyId", text, "Its permanent id.", required),
    field("name", "k8sName", text, "The name of the policy.", required),
    field("namespace", "k8sNamespace", text, "The namespace of the policy; created if missing.", required),
    field(
      "deployment",
      "deploymentId",
      text,
      "The id of the deployment that it belongs to and is deleted with.",
    ),
    field(
      "policy",
      "policy",
      jsonObject("a mapping"),
      "The policy itself: `apiVersion: cilium.io/v2`, `kind: CiliumNetworkPolicy`, and `spec` or `specs`. Its metadata is ignored.",
      required,
    ),
  ],
  judge: ({ deploymentId = "", ...content }, rules) => [
    ...problemsOf(parseApplyPolicy(create(ApplyCiliumNetworkPolicySchema, content), rules)),
    ...(deploymentId === ""
      ? []
      : problemsOf(collectProblems((refuse) => parseId("deployment_id", deploymentId, refuse)))),
  ],
  documentOf: ({ deploymentId = "", ...content }) => ({
    kind: "policy",
    spec: create(ApplyCiliumNetworkPolicySchema, content),
    deploymentId,
  }),
  contentOf: ({ spec, deploymentId = "" }) => ({ ...spec, deploymentId }),
});

export const policyDocument: KindDocument<"policy", ApplyCiliumNetworkPolicy, PolicySpec> = {
  schema,
  manifestsOf: (specs) => specs.map((spec) => [desiredNamespace(spec.namespace), desiredPolicy(spec)]),
};
