// What deploy/ installs, on a real Kubernetes: the API server accepts every manifest unchanged, and the agent's
// service account may do what the list of calls says and nothing else.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { clusterCalls } from "../../src/agent/cluster-calls.ts";
import { serviceAccountDir } from "../../src/kube/in-cluster.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import {
  token as controlToken,
  dev as region,
  serveControlPlane,
} from "../integration/server/served-control-plane.ts";
import { loadClusterwideDefinition } from "../support/cluster/published-definitions.ts";
import { allowedOf, loadQuestions } from "../support/cluster/verb-table.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { buildContainerImage, containerObstacle } from "../support/container.ts";
import type { ManifestObject } from "../support/deployed-parts.ts";
import { installRights, manifestsOf } from "../support/deployed-rights.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { fetchHttp1 } from "../support/http-clients.ts";
import { freePort } from "../support/krane-process.ts";
import { type AskedCall, isListed } from "../support/listed-calls.ts";

const cluster = clusterUnderTest();
const files = [
  "agent.yaml",
  "rights-admission.yaml",
  "rights-agent.yaml",
  "rights-secrets.yaml",
  "optional/rights-gateway.yaml",
  "optional/rights-logs.yaml",
  "optional/rights-registry.yaml",
  "optional/rights-scheduler.yaml",
  "server.yaml",
  "vault.yaml",
  "cilium.yaml",
];
const everyPart = ["agent", "registry", "secrets", "scheduler", "gateway", "logs"] as const;
const clusterwide = "CiliumClusterwideNetworkPolicy";

const definition = await loadClusterwideDefinition();

function apply(input: string): Promise<string> {
  const strictly = ["--server-side", "--field-manager=installer", "--validate=strict"];
  return cluster.kubectl(["apply", ...strictly, "-f", "-"], { input });
}

function asList(items: readonly KubeObject[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

before(() => cluster.empty());
after(async () => {
  await cluster.empty();
  const roles = ["krane", "krane-gateway", "krane-logs", "krane-registry", "krane-secrets"];
  for (const kind of ["clusterroles", "clusterrolebindings"])
    await cluster.kubectl(["delete", kind, ...roles, "--ignore-not-found"]);
  const admission = asList(manifestsOf("rights-admission.yaml"));
  await cluster.kubectl(["delete", "-f", "-", "--ignore-not-found"], { input: admission });
  if ("text" in definition)
    await cluster.kubectl(["delete", "-f", "-", "--ignore-not-found"], { input: definition.text });
});

test("every manifest is stored unchanged, and its pods are created", async (t) => {
  if ("text" in definition) {
    await apply(definition.text);
    const name = "crd/ciliumclusterwidenetworkpolicies.cilium.io";
    // kubectl does not wait for a definition that has no status yet.
    await eventually("it is known", () =>
      cluster.kubectl(["wait", "--timeout=30s", "--for=condition=Established", name]),
    );
  } else t.diagnostic(`${clusterwide} is left out: ${definition.missing}`);
  await apply(asList(manifestsOf("namespaces.yaml")));
  for (const file of files) {
    const known = manifestsOf(file).filter(({ kind }) => "text" in definition || kind !== clusterwide);
    await apply(asList(known));
  }
  // The namespace is held to the strictest of the Pod Security Standards, so pods that ask for more never come.
  const pods = await eventually("the pods are there", async () => {
    const { items } = JSON.parse(await cluster.kubectl(["-n", "krane", "get", "pods", "-o", "json"]));
    const found = items as readonly Pod[];
    assert.deepEqual(found.map(({ metadata }) => metadata?.labels?.["app.kubernetes.io/component"]).sort(), [
      "agent",
      "agent",
      "server",
      "server",
      "vault",
    ]);
    return found;
  });
  for (const { metadata, spec } of pods) {
    const tokens = (spec?.volumes ?? []).filter(({ projected }) => projected !== undefined);
    const isAgent = metadata?.labels?.["app.kubernetes.io/component"] === "agent";
    assert.equal(tokens.length, isAgent ? 1 : 0, metadata?.name);
  }
});

test("the agent may do what the list of calls says, and nothing else that any service account may not", async () => {
  await cluster.empty();
  const account = await installRights(cluster, everyPart);
  const questions = await loadQuestions(cluster, ["sentinel", "krane"]);
  assert.ok(questions.length > 1_000);
  const own = await allowedOf(cluster, account.token, questions);
  const bare = await allowedOf(cluster, await tokenOf("default", "default"), own);
  const listed = questions.filter((question) => isListed(question, everyPart));
  assert.ok(listed.length > clusterCalls.length);
  const texts = (some: readonly AskedCall[]) => some.map((question) => JSON.stringify(question)).sort();
  assert.deepEqual(texts(own), texts([...new Set([...listed, ...bare])]));
});

test("server and vault may do nothing that not every service account may", async () => {
  await apply(
    asList([...ofKind("server.yaml", "ServiceAccount"), ...ofKind("vault.yaml", "ServiceAccount")]),
  );
  for (const namespace of ["krane", "sentinel", "default"]) {
    const bare = await rulesOf(await tokenOf("default", "default"), namespace);
    for (const name of ["krane-server", "krane-vault"])
      assert.deepEqual(await rulesOf(await tokenOf("krane", name), namespace), bare, name);
  }
});

/** All that the owner of a token may do in a namespace, as the API server lists it. */
async function rulesOf(token: string, namespace: string): Promise<unknown> {
  const path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
  const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectRulesReview", spec: { namespace } };
  const answer = await cluster.request({ method: "POST", path, body, token });
  assert.equal(answer.status, 201);
  const { resourceRules, incomplete } = (answer.body as { readonly status: Rules }).status;
  assert.equal(incomplete, false);
  return resourceRules.map((rule) => JSON.stringify(rule)).sort();
}

interface Rules {
  readonly resourceRules: readonly unknown[];
  readonly incomplete: boolean;
}

const obstacle = (await containerObstacle()) ?? false;

test("the agent runs as its pod would: that configuration, that service account, that file system", {
  skip: obstacle,
}, async (t) => {
  const { token } = await installRights(cluster, ["agent", "secrets"]);
  const { admin, running } = await serveControlPlane(t, "h2c");
  const { k8sNamespace: namespace } = applyDeployment();
  await admin.setDeployment(region, applyDeployment({ k8sName: "web", deploymentId: "d_1" }));
  const image = await buildContainerImage();
  t.after(() => image.remove());
  const port = await freePort();
  const { hostname, port: apiPort } = new URL(cluster.serverUrl);
  const configMap = ofKind("agent.yaml", "ConfigMap")[0] as ManifestObject;
  const { child, exit } = await image.start(t, {
    args: ["agent", "--config", "/etc/krane/krane.toml"],
    files: {
      "/etc/krane/krane.toml": configMap.data?.["krane.toml"] ?? "",
      "/run/secrets/krane/control-token": controlToken,
      "/run/secrets/krane/agent-token": "token-of-the-agent-service",
      "/run/secrets/krane/vault-token": "token-of-the-vault",
      [`${serviceAccountDir}/token`]: token,
      [`${serviceAccountDir}/ca.crt`]: cluster.ca,
      [`${serviceAccountDir}/namespace`]: "krane",
    },
    env: {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: apiPort,
      UNKEY_RPC_PORT: String(port),
      UNKEY_PROMETHEUS_PORT: String(await freePort()),
      UNKEY_CONTROL_PLANE_URL: `http://127.0.0.1:${running?.port}`,
    },
  });
  await eventually("the deployment is there", async () => {
    const found = await cluster.kubectl(["-n", namespace, "get", "replicasets", "-o", "name"]);
    assert.equal(found.trim(), "replicaset.apps/web");
  });
  const ready = await fetchHttp1(`http://127.0.0.1:${port}/health/ready`);
  assert.equal(ready.status, 200, ready.body);
  child.kill("SIGTERM");
  const { code, stderr } = await exit;
  assert.equal(code, 0, stderr);
});

const asked: readonly (readonly [question: string, answer: "yes" | "no"])[] = [
  ["create replicasets.apps --all-namespaces", "yes"],
  ["delete ciliumnetworkpolicies.cilium.io -n acme", "yes"],
  ["patch deployments.apps -n sentinel", "yes"],
  ["get secrets/krane-registry -n acme", "yes"],
  ["create tokenreviews.authentication.k8s.io", "yes"],
  ["delete configmaps -n krane", "yes"],
  ["delete configmaps -n acme", "no"],
  ["patch deployments.apps -n acme", "no"],
  ["list secrets --all-namespaces", "no"],
  ["watch secrets -n sentinel", "no"],
  ["get secrets/other -n acme", "no"],
  ["delete secrets/krane-registry -n acme", "no"],
  ["delete namespaces", "no"],
  ["create pods -n acme", "no"],
  ["create pods/exec -n acme", "no"],
  ["create serviceaccounts/token -n krane", "no"],
  ["get nodes/proxy", "no"],
  ["escalate clusterroles", "no"],
  ["bind clusterroles", "no"],
  ["impersonate serviceaccounts -n kube-system", "no"],
  ["patch mutatingwebhookconfigurations", "no"],
];

test("kubectl says so too", async () => {
  const { kubeconfigPath } = await installRights(cluster, everyPart);
  const config = `--kubeconfig=${kubeconfigPath}`;
  const answers = await Promise.all(
    asked.map(async ([question]) => {
      const said = cluster.kubectl([config, "auth", "can-i", "--quiet", ...question.split(" ")]);
      return [
        question,
        await said.then(
          () => "yes",
          () => "no",
        ),
      ];
    }),
  );
  assert.deepEqual(answers, asked);
});

function ofKind(file: string, wanted: string): readonly KubeObject[] {
  return manifestsOf(file).filter(({ kind }) => kind === wanted);
}

async function tokenOf(namespace: string, name: string): Promise<string> {
  return (await cluster.kubectl(["-n", namespace, "create", "token", name])).trim();
}
