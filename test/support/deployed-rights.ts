// The agent's identity in a real cluster as an install makes it: the service account and the roles of deploy/manifests,
// and a token that Kubernetes signs for it, as a pod has one.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Agent } from "node:https";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { accessReviews, clusterCalls } from "../../src/agent/cluster-calls.ts";
import type { CallingPart } from "../../src/kinds/cluster-call.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { writeKubeconfig } from "./cluster/credentials.ts";
import type { TestCluster } from "./cluster-under-test.ts";
import { eventually } from "./eventually.ts";
import { readProjectFile } from "./project-files.ts";

export interface ServiceAccountAccess {
  /** As RBAC and the audit log know it. */
  readonly user: string;
  readonly token: string;
  readonly kubeconfigPath: string;
  remove(): Promise<void>;
}

/** The objects of a file in deploy/manifests. */
export function manifestsOf(name: string): readonly KubeObject[] {
  return parseManifests(readProjectFile(`deploy/manifests/${name}`));
}

function parseManifests(text: string): readonly KubeObject[] {
  return parseAllDocuments(text).map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS();
  });
}

const rightsFiles: Readonly<Record<CallingPart, string>> = {
  agent: "rights-agent.yaml",
  registry: "optional/rights-registry.yaml",
  secrets: "rights-secrets.yaml",
  scheduler: "optional/rights-scheduler.yaml",
  gateway: "optional/rights-gateway.yaml",
  logs: "optional/rights-logs.yaml",
};

const admissionFile = "rights-admission.yaml";

/**
 * Resolves when the API server grants what these parts call, and refuses what krane would not write. With the manifests
 * of another version, resolves when it grants what their roles say.
 */
export async function installRights(
  cluster: TestCluster,
  parts: readonly CallingPart[],
  { manifestsDir }: { readonly manifestsDir?: string } = {},
): Promise<ServiceAccountAccess> {
  const load = (file: string) =>
    manifestsDir === undefined
      ? manifestsOf(file)
      : parseManifests(readFileSync(join(manifestsDir, file), "utf8"));
  const accounts = load("agent.yaml").filter(({ kind }) => kind === "ServiceAccount");
  const rights = [admissionFile, ...parts.map((part) => rightsFiles[part])].flatMap(load);
  const send = (command: string, items: readonly KubeObject[], ...options: string[]) =>
    cluster.kubectl([command, ...options, "-f", "-"], { input: JSON.stringify(listOf(items)) });
  await send("apply", load("namespaces.yaml"));
  await send("apply", [...accounts, ...rights]);
  const token = (await cluster.kubectl(["-n", "krane", "create", "token", "krane", "--duration=2h"])).trim();
  const user = "system:serviceaccount:krane:krane";
  const kubeconfigPath = join(cluster.dir, "service-account.kubeconfig");
  await writeKubeconfig({ user, token, kubeconfigPath, groups: [] }, cluster.serverUrl, cluster.ca);
  const calls = clusterCalls.filter(({ part }) => parts.includes(part));
  const expected =
    manifestsDir === undefined
      ? accessReviews(calls, "krane").map(({ attributes }) => attributes)
      : rights.flatMap(attributesOf);
  await eventually("the rights are there", async () => {
    for (const attributes of expected)
      assert.ok(await isAllowed(cluster, token, attributes), JSON.stringify(attributes));
  });
  await eventually("what krane would not write is refused", async () => {
    const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: "kube-of-nobody" } };
    const path = "/api/v1/namespaces?dryRun=All";
    assert.equal((await cluster.request({ method: "POST", path, body, token })).status, 422);
  });
  return {
    user,
    token,
    kubeconfigPath,
    remove: async () => {
      await send("delete", rights, "--ignore-not-found");
    },
  };
}

interface Role extends KubeObject {
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[];
    readonly resources?: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/** What a role grants, one call at a time. Nothing for other objects. */
function attributesOf(object: Role): readonly object[] {
  const namespace = object.metadata?.namespace;
  return (object.rules ?? []).flatMap(({ apiGroups = [], resources = [], resourceNames, verbs }) =>
    verbs.flatMap((verb) =>
      apiGroups.flatMap((group) =>
        resources.flatMap((path) => {
          const [resource, subresource] = path.split("/");
          return (resourceNames ?? [undefined]).map((name) => ({
            verb,
            group,
            resource,
            ...(subresource !== undefined && { subresource }),
            ...(namespace !== undefined && { namespace }),
            ...(name !== undefined && { name }),
          }));
        }),
      ),
    ),
  );
}

/** Asks the API server what it would say to the owner of the token. */
export async function isAllowed(
  cluster: Pick<TestCluster, "request">,
  token: string,
  resourceAttributes: object,
  agent?: Agent,
): Promise<boolean> {
  const kind = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview" };
  const { status, body } = await cluster.request({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: { ...kind, spec: { resourceAttributes } },
    token,
    ...(agent && { agent }),
  });
  assert.equal(status, 201, JSON.stringify(body));
  return (body as { readonly status: { readonly allowed: boolean } }).status.allowed;
}

function listOf(items: readonly KubeObject[]) {
  return { apiVersion: "v1", kind: "List", items };
}
