// Everything that can be asked of an API server: each verb on each resource that it serves, and the few verbs that
// RBAC knows beside them. Whoever is checked against all of it has no right that nobody thought of.
import assert from "node:assert/strict";
import { Agent } from "node:https";
import type { TestCluster } from "../cluster-under-test.ts";
import { isAllowed } from "../deployed-rights.ts";
import type { AskedCall } from "../listed-calls.ts";

const verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const rbac = "rbac.authorization.k8s.io";
// What gives somebody else's rights, on things of which some are no resources.
const grants: readonly AskedCall[] = [
  ...["clusterroles", "roles"].flatMap((resource) =>
    ["bind", "escalate"].map((verb) => ({ group: rbac, resource, verb })),
  ),
  ...["users", "groups", "serviceaccounts"].map((resource) => ({ group: "", resource, verb: "impersonate" })),
  ...["approve", "sign"].map((verb) => ({ group: "certificates.k8s.io", resource: "signers", verb })),
];
const secretNames = ["krane-registry", "other"];
const atOnce = 16;

type Requester = Pick<TestCluster, "request">;

/** What is namespaced is asked about in each of these namespaces. */
export async function loadQuestions(
  cluster: Requester,
  namespaces: readonly string[],
): Promise<readonly AskedCall[]> {
  const questions: AskedCall[] = namespaces.flatMap((namespace) =>
    grants.flatMap((grant) => [grant, { ...grant, namespace }]),
  );
  for (const { group, resource, subresource, namespaced } of await loadResources(cluster))
    for (const verb of verbs)
      for (const namespace of namespaced ? namespaces : [undefined]) {
        const question = { group, resource, subresource, verb, namespace };
        questions.push(question);
        if (resource === "secrets") questions.push(...secretNames.map((name) => ({ ...question, name })));
      }
  return questions;
}

/** Those to which the owner of the token hears yes. */
export async function allowedOf(
  cluster: Requester,
  token: string,
  questions: readonly AskedCall[],
): Promise<readonly AskedCall[]> {
  const allowed: AskedCall[] = [];
  const rest = [...questions];
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const work = async () => {
    for (let question = rest.pop(); question !== undefined; question = rest.pop())
      if (await isAllowed(cluster, token, question, agent)) allowed.push(question);
  };
  await Promise.all(Array.from({ length: atOnce }, work)).finally(() => agent.destroy());
  return allowed;
}

interface ServedResource {
  readonly group: string;
  readonly resource: string;
  readonly subresource: string | undefined;
  readonly namespaced: boolean;
}

async function loadResources(cluster: Requester): Promise<readonly ServedResource[]> {
  const { groups } = (await read(cluster, "/apis")) as { readonly groups: readonly Group[] };
  const places = groups.flatMap(({ name, versions }) =>
    versions.map(({ groupVersion }) => ({ group: name, path: `/apis/${groupVersion}` })),
  );
  const served = new Map<string, ServedResource>();
  for (const { group, path } of [{ group: "", path: "/api/v1" }, ...places]) {
    const { resources } = (await read(cluster, path)) as { readonly resources: readonly Resource[] };
    for (const { name, namespaced } of resources) {
      const [resource = "", subresource] = name.split("/");
      served.set(`${group}/${name}`, { group, resource, subresource, namespaced });
    }
  }
  return [...served.values()];
}

interface Group {
  readonly name: string;
  readonly versions: readonly { readonly groupVersion: string }[];
}

interface Resource {
  readonly name: string;
  readonly namespaced: boolean;
}

async function read(cluster: Requester, path: string): Promise<unknown> {
  const { status, body } = await cluster.request({ path });
  assert.equal(status, 200, path);
  return body;
}
