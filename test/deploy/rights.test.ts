// The roles in deploy/ against the list of calls, in both directions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { accessReviews, callingParts, clusterCalls } from "../../src/agent/cluster-calls.ts";
import type { CallingPart } from "../../src/kinds/cluster-call.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { rightsTemplate } from "../../tools/rights-template.ts";
import { manifestsOf } from "../support/deployed-rights.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

interface Role extends KubeObject {
  readonly rules: readonly Rule[];
}

interface Binding extends KubeObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string; readonly namespace: string }[];
}

const manifests = projectFiles(/^deploy\/manifests\/.*\.yaml$/).map((name) =>
  name.replace("deploy/manifests/", ""),
);
const partOf: Readonly<Record<string, CallingPart>> = {
  "rights-agent.yaml": "agent",
  "optional/rights-registry.yaml": "registry",
  "rights-secrets.yaml": "secrets",
  "optional/rights-scheduler.yaml": "scheduler",
  "optional/rights-gateway.yaml": "gateway",
  "optional/rights-logs.yaml": "logs",
};

function ofKind(kinds: readonly string[]) {
  return manifests.flatMap((file) =>
    manifestsOf(file)
      .filter(({ kind = "" }) => kinds.includes(kind))
      .map((object) => ({ file, object })),
  );
}

test("the chart's rules are those of the list of calls", () => {
  const template = readProjectFile("deploy/chart/krane/templates/_rights.tpl");
  assert.equal(template, rightsTemplate(clusterCalls), "run `make deploy`");
});

test("the roles of the manifests grant each call of the list, where it is made, and no other", () => {
  const granted = ofKind(["ClusterRole", "Role"]).flatMap(({ file, object }) => {
    const { rules, metadata } = object as Role;
    return rules.flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs }) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((resource) =>
          verbs.flatMap((verb) =>
            resourceNames.map((name) => [partOf[file], group, resource, verb, metadata?.namespace, name]),
          ),
        ),
      ),
    );
  });
  const listed = accessReviews(clusterCalls, "krane").map(({ call, attributes }) => {
    const { group, resource, subresource, verb, namespace, name } = attributes;
    const what = subresource === undefined ? resource : `${resource}/${subresource}`;
    return [call.part, group, what, verb, namespace, name];
  });
  assert.deepEqual(granted.sort(), listed.sort());
});

test("each role is bound to the agent's service account, and nothing else is bound to anybody", () => {
  const roles = ofKind(["ClusterRole", "Role"]).map(({ file, object }) => ({
    file,
    role: { kind: object.kind, name: object.metadata?.name },
    namespace: object.metadata?.namespace,
  }));
  const bound = ofKind(["ClusterRoleBinding", "RoleBinding"]).map(({ file, object }) => {
    const { roleRef, subjects } = object as Binding;
    assert.deepEqual(subjects, [{ kind: "ServiceAccount", name: "krane", namespace: "krane" }]);
    return { file, role: { kind: roleRef.kind, name: roleRef.name }, namespace: object.metadata?.namespace };
  });
  assert.deepEqual(bound, roles);
});

test("no call could read all secrets, or gives more rights than it has", () => {
  for (const { kind, verbs, names, subresource } of clusterCalls) {
    assert.notEqual(kind.group, "rbac.authorization.k8s.io");
    if (subresource !== undefined) assert.match(`${kind.plural}/${subresource}`, /^pods\/(eviction|log)$/);
    if (kind.plural !== "secrets") continue;
    assert.ok(!verbs.includes("list") && !verbs.includes("watch"));
    assert.ok(!verbs.includes("get") || names?.length === 1);
  }
  const whole = clusterCalls.filter(({ subresource }) => subresource === undefined);
  const made = whole.filter(({ verbs }) => verbs.includes("create")).map(({ kind }) => kind.plural);
  assert.ok(!made.includes("pods") && !made.includes("serviceaccounts"));
});

test("every reason is one sentence", () => {
  for (const { why } of clusterCalls) assert.match(why, /^[A-Z][^.]*(\w\/v\d [^.]*)?\.$/);
});

test("an agent calls for what its configuration has", () => {
  const nothing = {} as never;
  const off = { enabled: false };
  assert.deepEqual(callingParts({ logs: off }), ["agent"]);
  assert.deepEqual(callingParts({ logs: off, registry: nothing }), ["agent", "registry"]);
  assert.deepEqual(callingParts({ logs: off, registry: nothing, vault: nothing }), [
    "agent",
    "registry",
    "secrets",
  ]);
  assert.deepEqual(callingParts({ logs: off, scheduler: nothing }), ["agent", "scheduler"]);
  assert.deepEqual(callingParts({ logs: off, gateway: nothing }), ["agent", "gateway"]);
  assert.deepEqual(callingParts({ logs: { enabled: true } }), ["agent", "logs"]);
});
