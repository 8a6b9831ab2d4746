// What admission policies know about the objects that are their parameters, after the last policy with parameters of that
// kind was removed and another one installed, as by an uninstall and a new install of the chart.
//
// The chart's policy of evictions has Pods as parameters, so they must be up to date. Leases are not, so a fence that compares
// writes with the Lease would refuse those of a new leader (ADR 14). If the test of Leases fails, Kubernetes has mended that.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { KubeObject } from "../../src/kube/types.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";

const cluster = clusterUnderTest();
const admission = "/apis/admissionregistration.k8s.io/v1";
const policies = `${admission}/validatingadmissionpolicies`;
const bindings = `${admission}/validatingadmissionpolicybindings`;
const name = "parameter";
const timesAsked = 30;

interface ParameterKind {
  readonly object: KubeObject & { readonly spec?: object };
  readonly group: string;
  readonly plural: string;
}

const container = { name: "app", image: "registry.example/app:1" };
const upToDate: readonly ParameterKind[] = [
  {
    object: {
      apiVersion: "v1",
      kind: "Pod",
      spec: { containers: [container], schedulerName: "nobody" },
    },
    group: "/api/v1",
    plural: "pods",
  },
  { object: { apiVersion: "v1", kind: "Secret" }, group: "/api/v1", plural: "secrets" },
  {
    object: {
      apiVersion: "cilium.io/v2",
      kind: "CiliumNetworkPolicy",
      spec: { endpointSelector: {}, ingress: [{}] },
    },
    group: "/apis/cilium.io/v2",
    plural: "ciliumnetworkpolicies",
  },
];
const lease: ParameterKind = {
  object: { apiVersion: "coordination.k8s.io/v1", kind: "Lease" },
  group: "/apis/coordination.k8s.io/v1",
  plural: "leases",
};

/** A parameter that names a writer, and a policy that accepts only the ConfigMaps of that one. */
async function setUp(t: TestContext, { object, group, plural }: ParameterKind) {
  const namespace = await cluster.freshNamespace(t);
  const { apiVersion, kind } = object;
  const send = async (method: "POST" | "PATCH" | "DELETE", path: string, body?: object) => {
    const contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json";
    const answer = await cluster.request({ method, path, contentType, body });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  };
  const collection = `${group}/namespaces/${namespace}/${plural}`;
  const metadata = { name, namespace };
  await send("POST", collection, { ...object, metadata });
  const remove = async () => {
    await send("DELETE", `${bindings}/${namespace}`);
    await send("DELETE", `${policies}/${namespace}`);
  };
  t.after(() => cluster.kubectl(["delete", "validatingadmissionpolicy", namespace, "--ignore-not-found"]));
  const install = async () => {
    const described = { apiVersion: "admissionregistration.k8s.io/v1", metadata: { name: namespace } };
    await send("POST", policies, {
      ...described,
      kind: "ValidatingAdmissionPolicy",
      spec: {
        paramKind: { apiVersion, kind },
        matchConstraints: {
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
          resourceRules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["configmaps"] },
          ],
        },
        validations: [{ expression: "object.data.writer == params.metadata.annotations.writer" }],
      },
    });
    await send("POST", bindings, {
      ...described,
      kind: "ValidatingAdmissionPolicyBinding",
      spec: {
        policyName: namespace,
        paramRef: { ...metadata, parameterNotFoundAction: "Deny" },
        validationActions: ["Deny"],
      },
    });
  };
  const isAccepted = async (writer: string): Promise<boolean> => {
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a" }, data: { writer } };
    const path = `/api/v1/namespaces/${namespace}/configmaps?dryRun=All`;
    return (await cluster.request({ method: "POST", path, body })).status === 201;
  };
  return {
    install,
    remove,
    isAccepted,
    name: (writer: string) =>
      send("PATCH", `${collection}/${name}`, { metadata: { annotations: { writer } } }),
    untilAccepted: (writer: string, accepted: boolean) =>
      eventually(`${writer} is ${accepted ? "" : "not "}accepted`, async () =>
        assert.equal(await isAccepted(writer), accepted),
      ),
  };
}

/** Until a policy is in force again, and its parameter has changed since. */
async function installAgain(parameter: Awaited<ReturnType<typeof setUp>>): Promise<void> {
  await parameter.name("one");
  await parameter.install();
  await parameter.untilAccepted("two", false);
  await parameter.untilAccepted("one", true);
  await parameter.name("two");
  await parameter.untilAccepted("two", true);
  await parameter.untilAccepted("one", false);
  await parameter.remove();
  await parameter.untilAccepted("one", true);
  await parameter.install();
  await parameter.untilAccepted("one", false);
  await parameter.name("one");
}

for (const kind of upToDate)
  test(`a policy that is installed again sees changes of a ${kind.object.kind}`, async (t) => {
    const parameter = await setUp(t, kind);
    await installAgain(parameter);
    await parameter.untilAccepted("one", true);
    await parameter.untilAccepted("two", false);
  });

test("a policy that is installed again sees a Lease as it was, so the API server has no fence", async (t) => {
  const parameter = await setUp(t, lease);
  await installAgain(parameter);
  for (let asked = 0; asked < timesAsked; asked++)
    assert.deepEqual([await parameter.isAccepted("one"), await parameter.isAccepted("two")], [false, true]);
});
