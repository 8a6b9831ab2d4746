// The one cluster of a test run, as its test files see it. It is started by
// run-cluster-tests.ts and shared: a test of a client takes a namespace of its
// own; a test that runs an agent empties the cluster and has it to itself.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { type ApiAnswer, type ApiRequest, requestApi } from "./cluster/api-request.ts";
import { emptyCluster } from "./cluster/emptying.ts";
import type { ClusterFacts } from "./cluster/facts.ts";
import { type KubectlOptions, runKubectl } from "./cluster/kubectl.ts";
import { eventually } from "./eventually.ts";

export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export interface TestCluster extends ClusterFacts {
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<string>;
  request(asked: ApiRequest): Promise<ApiAnswer>;
  /** A namespace in which pods can be created at once; deleted after the test. */
  freshNamespace(t: TestContext): Promise<string>;
  /** Gives the agent's user these rights everywhere until the test is over. */
  grantToAgent(t: TestContext, rules: readonly PolicyRule[]): Promise<void>;
  /** Removes every namespace but the system's, all workloads, and whatever krane manages. */
  empty(): Promise<void>;
}

export const clusterVariable = "KRANE_TEST_CLUSTER";

export function clusterUnderTest(): TestCluster {
  const path = process.env[clusterVariable];
  if (path === undefined) {
    throw new Error(
      "no cluster: run this file with `node --import tsx test/support/run-cluster-tests.ts <file>`",
    );
  }
  const facts: ClusterFacts = JSON.parse(readFileSync(path, "utf8"));
  return {
    ...facts,
    kubectl: (args, options) => runKubectl(facts, args, options),
    request: (asked) => requestApi(facts, asked),
    freshNamespace: (t) => freshNamespace(facts, t),
    grantToAgent: (t, rules) => grantToAgent(facts, t, rules),
    empty: () => emptyCluster(facts),
  };
}

async function freshNamespace(facts: ClusterFacts, t: TestContext): Promise<string> {
  const name = uniqueName();
  await create(facts, t, "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
  // Until its default service account exists, pods of a namespace are refused
  // and whoever creates them backs off.
  await eventually(`namespace ${name} has its service account`, async () => {
    const path = `/api/v1/namespaces/${name}/serviceaccounts/default`;
    expectStatus(await requestApi(facts, { path }), 200, path);
  });
  return name;
}

async function grantToAgent(
  facts: ClusterFacts,
  t: TestContext,
  rules: readonly PolicyRule[],
): Promise<void> {
  const apiVersion = "rbac.authorization.k8s.io/v1";
  const apiGroup = "rbac.authorization.k8s.io";
  const metadata = { name: uniqueName() };
  await create(facts, t, `/apis/${apiVersion}/clusterroles`, {
    apiVersion,
    kind: "ClusterRole",
    metadata,
    rules,
  });
  await create(facts, t, `/apis/${apiVersion}/clusterrolebindings`, {
    apiVersion,
    kind: "ClusterRoleBinding",
    metadata,
    roleRef: { apiGroup, kind: "ClusterRole", name: metadata.name },
    subjects: [{ apiGroup, kind: "User", name: facts.agentUser }],
  });
}

/** Creates an object that goes when the test is over. */
async function create(
  facts: ClusterFacts,
  t: TestContext,
  collection: string,
  body: { readonly metadata: { readonly name: string } } & Readonly<Record<string, unknown>>,
): Promise<void> {
  expectStatus(await requestApi(facts, { method: "POST", path: collection, body }), 201, collection);
  t.after(async () => {
    await requestApi(facts, { method: "DELETE", path: `${collection}/${body.metadata.name}` });
  });
}

function expectStatus(answer: ApiAnswer, status: number, path: string): void {
  if (answer.status !== status) {
    throw new Error(`${path}: expected ${status}, got ${answer.status}: ${JSON.stringify(answer.body)}`);
  }
}

function uniqueName(): string {
  return `test-${randomBytes(5).toString("hex")}`;
}
