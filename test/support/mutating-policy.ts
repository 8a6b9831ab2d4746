// Changes objects when they are written, as a mutating webhook does, with a policy that the API server evaluates itself.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import type { TestCluster } from "./cluster-under-test.ts";

export interface Mutation {
  readonly name: string;
  /** The namespace whose objects are changed. */
  readonly namespace: string;
  readonly rule: {
    readonly apiGroups: readonly string[];
    readonly apiVersions: readonly string[];
    readonly operations: readonly string[];
    readonly resources: readonly string[];
  };
  /** A CEL expression for a list of JSONPatch. */
  readonly patch: string;
}

/** Installs the policy, and returns what removes it. The server takes some time to follow either. */
export async function installMutation(
  t: TestContext,
  cluster: TestCluster,
  { name, namespace, rule, patch }: Mutation,
): Promise<() => Promise<void>> {
  const version = "/apis/admissionregistration.k8s.io/v1";
  const put = async (plural: string, kind: string, spec: object) => {
    const body = { apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name }, spec };
    const answer = await cluster.request({ method: "POST", path: `${version}/${plural}`, body });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
  };
  const remove = async () => {
    for (const plural of ["mutatingadmissionpolicybindings", "mutatingadmissionpolicies"])
      await cluster.request({ method: "DELETE", path: `${version}/${plural}/${name}` });
  };
  t.after(remove);
  await put("mutatingadmissionpolicies", "MutatingAdmissionPolicy", {
    failurePolicy: "Fail",
    reinvocationPolicy: "Never",
    matchConstraints: {
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      resourceRules: [rule],
    },
    mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: patch } }],
  });
  await put("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding", { policyName: name });
  return remove;
}
