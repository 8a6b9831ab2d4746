import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { utf8 } from "../../../test/support/deployment-messages.ts";
import { applyPolicy, jsonBytes, policyDocument, policySpec } from "../../../test/support/policy-messages.ts";
import {
  ApplyCiliumNetworkPolicySchema,
  DeleteCiliumNetworkPolicySchema,
} from "../../gen/ctrl/v1/cilium_network_policy_pb.ts";
import { describeProblems, type FieldProblem } from "../../model/field-problem.ts";
import { ingressPolicyName } from "../deployment/ingress-policy.ts";
import { desiredPolicy } from "./desired.ts";
import { policyBytesMax } from "./policy-document.ts";
import { parseApplyPolicy, parseDeletePolicy } from "./spec.ts";

type Overrides = Parameters<typeof applyPolicy>[0];

const rules = { ownNamespace: "platform" };

function problemsOf(overrides: Overrides): readonly FieldProblem[] {
  const parsed = parseApplyPolicy(applyPolicy(overrides), rules);
  return parsed.kind === "invalid" ? parsed.problems : [];
}

const places: readonly (readonly [string, Overrides, string])[] = [
  ["no namespace", { k8sNamespace: "" }, "k8s_namespace"],
  ["a namespace with a slash", { k8sNamespace: "a/b" }, "k8s_namespace"],
  ["a namespace of 64 characters", { k8sNamespace: "n".repeat(64) }, "k8s_namespace"],
  ["namespace default", { k8sNamespace: "default" }, "k8s_namespace"],
  ["namespace kube-system", { k8sNamespace: "kube-system" }, "k8s_namespace"],
  ["namespace kube-node-lease", { k8sNamespace: "kube-node-lease" }, "k8s_namespace"],
  ["krane's own namespace", { k8sNamespace: "platform" }, "k8s_namespace"],
  ["no name", { k8sName: "" }, "k8s_name"],
  ["a name that climbs", { k8sName: "../x" }, "k8s_name"],
  ["a name with a slash", { k8sName: "a/b" }, "k8s_name"],
  ["a name in capitals", { k8sName: "Web" }, "k8s_name"],
  ["a name of 254 characters", { k8sName: "n".repeat(254) }, "k8s_name"],
  ["the name of an environment's ingress policy", { k8sName: ingressPolicyName("env_1") }, "k8s_name"],
  [
    "the name of a sentinel's gossip policy",
    { k8sNamespace: "sentinel", k8sName: "gate-gossip-lan" },
    "k8s_name",
  ],
];

const rule = policyDocument.spec;
const document = (changes: object) => ({ policy: jsonBytes({ ...policyDocument, ...changes }) });
const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const withText = (text: string) => ({
  policy: utf8(
    `{"apiVersion":"cilium.io/v2","kind":"CiliumNetworkPolicy","spec":{"endpointSelector":{},"x":${text}}}`,
  ),
});

const invalid: readonly (readonly [string, Overrides, string])[] = [
  ...places,
  ["no id", { ciliumNetworkPolicyId: "" }, "cilium_network_policy_id"],
  ["an id that no label can hold", { ciliumNetworkPolicyId: "net 1" }, "cilium_network_policy_id"],
  ["no policy", { policy: new Uint8Array() }, "policy"],
  ["a policy that is not JSON", { policy: utf8("spec: {}") }, "policy"],
  ["a policy that is not UTF-8", { policy: Uint8Array.of(0x22, 0xff, 0x22) }, "policy"],
  ["a policy that is a list", { policy: utf8("[]") }, "policy"],
  ["a policy that is null", { policy: utf8("null") }, "policy"],
  ["too large a policy", document({ note: "x".repeat(policyBytesMax) }), "policy"],
  ["a policy without rules", document({ spec: undefined }), "policy"],
  ["a policy whose rules are null", document({ spec: null, specs: null }), "policy"],
  ["another version", document({ apiVersion: "cilium.io/v2alpha1" }), "policy.apiVersion"],
  ["no version", document({ apiVersion: undefined }), "policy.apiVersion"],
  ["a policy of the whole cluster", document({ kind: "CiliumClusterwideNetworkPolicy" }), "policy.kind"],
  ["another kind", document({ kind: "Secret" }), "policy.kind"],
  ["a kind that is a number", document({ kind: 1 }), "policy.kind"],
  ["rules that are text", document({ spec: "all" }), "policy.spec"],
  ["rules that are a list", document({ spec: [rule] }), "policy.spec"],
  ["a list of rules that is an object", document({ specs: rule }), "policy.specs"],
  ["an empty list of rules", document({ specs: [] }), "policy.specs"],
  ["a list with null in it", document({ specs: [rule, null] }), "policy.specs[1]"],
  ["a rule that selects nobody", document({ spec: { ingress: [] } }), "policy.spec.endpointSelector"],
  [
    "a rule whose selector is null",
    document({ specs: [rule, { ...rule, endpointSelector: null }] }),
    "policy.specs[1].endpointSelector",
  ],
  ["a rule about nodes", document({ spec: { nodeSelector: {}, ingress: [{}] } }), "policy.spec.nodeSelector"],
  [
    "a rule about pods and nodes",
    document({ spec: { ...rule, nodeSelector: {} } }),
    "policy.spec.nodeSelector",
  ],
  ["rules nested without end", withText(deep(50_000)), "policy.spec"],
  ["a number without end", withText("1e999"), "policy.spec"],
  ["a number that is not exact", withText("[-9007199254740993]"), "policy.spec"],
  ["half a character", withText('"\\ud800"'), "policy.spec"],
  ["half a character in a name", withText('{"\\udc00":1}'), "policy.spec"],
];

for (const [what, overrides, path] of invalid) {
  test(`${what} is refused at ${path}`, () => {
    assert.deepEqual(
      problemsOf(overrides).map((problem) => problem.path),
      [path],
    );
  });
}

for (const [what, { k8sNamespace = "acme", k8sName = "web" } = {}] of places) {
  test(`${what} is refused in an order to delete, too`, () => {
    const message = create(DeleteCiliumNetworkPolicySchema, { k8sNamespace, k8sName });
    assert.equal(parseDeletePolicy(message, rules).kind, "invalid");
  });
}

test("everything that is wrong is said at once", () => {
  const policy = jsonBytes({ kind: "Secret", spec: 1, specs: [1, { nodeSelector: {} }] });
  const paths = problemsOf({ k8sNamespace: "", k8sName: "", ciliumNetworkPolicyId: "", policy });
  assert.equal(new Set(paths.map(({ path }) => path)).size, 8, describeProblems(paths));
});

test("a problem names what it saw, and never a value of the rules", () => {
  const canary = "canary-in-a-header";
  const broken = document({
    kind: "Secret",
    spec: { headers: [canary], nodeSelector: canary, [canary]: 1e300 },
  });
  const text = describeProblems(problemsOf(broken)) + describeProblems(problemsOf({ policy: utf8(canary) }));
  assert.match(text, /must be "CiliumNetworkPolicy", but is "Secret"/);
  assert.doesNotMatch(text, /canary/);
});

test("the namespace of the sentinels is allowed, where the sentinels' egress policies are", () => {
  assert.equal(policySpec({ k8sNamespace: "sentinel" }).namespace, "sentinel");
  const message = create(DeleteCiliumNetworkPolicySchema, { k8sNamespace: "sentinel", k8sName: "a.b" });
  assert.deepEqual(parseDeletePolicy(message, rules), {
    kind: "valid",
    spec: { namespace: "sentinel", name: "a.b" },
  });
});

test("names of policies that krane makes itself are free in other namespaces", () => {
  assert.deepEqual(problemsOf({ k8sName: "web-gossip-lan" }), []);
  assert.deepEqual(problemsOf({ k8sName: "allow-sentinel-ingress" }), []);
});

test("whatever a policy says about itself, only its rules have an effect", () => {
  const plain = desiredPolicy(policySpec());
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (metadata, status, other) => {
      const policy = jsonBytes({ ...policyDocument, metadata, status, other });
      assert.deepEqual(desiredPolicy(policySpec({ policy })), plain);
    }),
  );
  const metadata = {
    name: "x",
    namespace: "kube-system",
    finalizers: ["a/b"],
    ownerReferences: [{}],
    uid: "1",
  };
  assert.deepEqual(desiredPolicy(policySpec(document({ metadata }))), plain);
  assert.deepEqual(Object.keys(plain.metadata).sort(), ["annotations", "labels", "name", "namespace"]);
  assert.deepEqual(plain.metadata.labels, {
    "app.kubernetes.io/managed-by": "krane",
    "app.kubernetes.io/component": "ciliumnetworkpolicy",
    "unkey.com/networkpolicy.id": "net_1a2B3c4D",
  });
});

test("rules are taken as they are: empty ones are kept, members that are null are left out", () => {
  const spec = {
    endpointSelector: {},
    ingress: [{ fromEndpoints: [], toPorts: null }],
    egress: [{}],
    x: null,
  };
  const manifest = desiredPolicy(policySpec(document({ spec, specs: [{ ...spec, description: "\u00fc" }] })));
  const kept = { endpointSelector: {}, ingress: [{ fromEndpoints: [] }], egress: [{}] };
  assert.deepEqual(manifest.spec, kept);
  assert.deepEqual(manifest.specs, [{ ...kept, description: "\u00fc" }]);
});

test("whatever the rules are, what goes out is what JSON can carry", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue()), (members) => {
      const spec = { ...members, endpointSelector: {} };
      const parsed = parseApplyPolicy(applyPolicy(document({ spec })), rules);
      if (parsed.kind === "invalid") {
        for (const { path, message } of parsed.problems)
          assert.match(`${path} ${message}`, /^policy\.spec[ -~]+$/);
        return;
      }
      const manifest = desiredPolicy(parsed.spec);
      assert.deepEqual(JSON.parse(Buffer.from(JSON.stringify(manifest)).toString()), manifest);
    }),
  );
});

const changes: Readonly<Record<string, Overrides>> = {
  k8s_namespace: { k8sNamespace: "other" },
  k8s_name: { k8sName: "other" },
  cilium_network_policy_id: { ciliumNetworkPolicyId: "net_other" },
  policy: document({ spec: { ...rule, description: "other" } }),
};

test("the table of changes has every field of the message", () => {
  const fields = ApplyCiliumNetworkPolicySchema.fields.map(({ name }) => name);
  assert.deepEqual(Object.keys(changes).sort(), fields.sort());
});

for (const [what, change] of Object.entries(changes)) {
  test(`${what} reaches the manifest, and its hash`, () => {
    const hash = (overrides: Overrides) => desiredPolicy(policySpec(overrides)).metadata.annotations;
    assert.notDeepEqual(hash(change), hash({}));
  });
}

test("the largest policy that is accepted stays below the limits of the API server", () => {
  const labels = Object.fromEntries(
    Array.from({ length: 9_000 }, (_, index) => [`label-number-${index}`, ""]),
  );
  const spec = { endpointSelector: { matchLabels: labels } };
  const bytes = Buffer.byteLength(JSON.stringify(desiredPolicy(policySpec(document({ spec })))));
  // The server's managedFields repeat the name of every label.
  assert.ok(bytes * 3 < 1.25 * 2 ** 20, String(bytes));
});
