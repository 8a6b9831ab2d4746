// The truth of the contract: a real kube-apiserver.
import { request } from "node:http";
import { join } from "node:path";
import type { ContractTarget } from "../../../packages/kube-apiserver/test/contract/target.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createKubeApi, json } from "../../../src/kube/client.ts";
import { fixedCredential } from "../../../src/kube/credentials.ts";
import { createHttpTransport } from "../../../src/kube/http-transport.ts";
import type { KubeTransport } from "../../../src/kube/transport.ts";
import type { ClusterFacts } from "./facts.ts";

/** Reached through the client that krane itself uses, which so passes the contract too. */
export function realServerTarget(
  facts: ClusterFacts,
): Omit<ContractTarget, "transport"> & { readonly transport: KubeTransport } {
  const transport = createHttpTransport(
    {
      endpoint: {
        server: facts.serverUrl,
        ca: facts.ca,
        credentials: fixedCredential({ authorization: `Bearer ${facts.adminToken}` }),
      },
      connections: 16,
    },
    { clock: createSystemClock() },
  );
  return {
    name: "kube-apiserver",
    api: createKubeApi(transport, { mayQuoteSecrets: true }),
    transport,
    userAgent: "krane",
    removeNamespace: (name) => removeNamespace(transport, name),
    compactHistory: () => compactEtcd(join(facts.dir, "etcd.sock")),
    close: () => transport.close(),
  };
}

const contents = [
  "apis/apps/v1/NAMESPACE/deployments",
  "apis/apps/v1/NAMESPACE/replicasets",
  "apis/policy/v1/NAMESPACE/poddisruptionbudgets",
  "apis/coordination.k8s.io/v1/NAMESPACE/leases",
  "api/v1/NAMESPACE/pods",
  "api/v1/NAMESPACE/services",
  "api/v1/NAMESPACE/secrets",
  "api/v1/NAMESPACE/serviceaccounts",
  "api/v1/NAMESPACE/configmaps",
  "api/v1/NAMESPACE/events",
];

/**
 * The namespace controller would look for objects of every kind there is, and several hundred
 * namespaces keep it busy for minutes. It begins five seconds after the delete; until then the few
 * kinds that cases make are emptied here, and the namespace is not awaited.
 */
async function removeNamespace(transport: KubeTransport, name: string): Promise<void> {
  const { signal } = new AbortController();
  const path = `/api/v1/namespaces/${name}`;
  const { status } = await transport.send({ method: "DELETE", path }, signal);
  if (status >= 300) return;
  for (const kind of contents) {
    const collection = `/${kind.replace("NAMESPACE", `namespaces/${name}`)}`;
    await transport.send({ method: "DELETE", path: collection, query: { gracePeriodSeconds: "0" } }, signal);
  }
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: { finalizers: [] } };
  await transport.send({ method: "PUT", path: `${path}/finalize`, contentType: json, body }, signal);
}

/**
 * Through etcd's JSON gateway: nothing but Node is needed for it. The API server keeps states of
 * its own, and looks at this key to learn which of them to forget.
 */
async function compactEtcd(socketPath: string): Promise<void> {
  const encode = (text: string) => Buffer.from(text).toString("base64");
  const range = await askEtcd(socketPath, "/v3/kv/range", { key: encode("none") });
  const { revision } = (range as { readonly header: { readonly revision: string } }).header;
  const mark = { key: encode("compact_rev_key"), value: encode(revision) };
  await askEtcd(socketPath, "/v3/kv/put", mark);
  await askEtcd(socketPath, "/v3/kv/compaction", { revision, physical: true });
}

function askEtcd(socketPath: string, path: string, body: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, path, method: "POST" }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      answer.on("error", reject);
      answer.on("end", () => {
        if (answer.statusCode === 200) resolve(JSON.parse(text));
        else reject(new Error(`etcd ${path}: ${answer.statusCode}: ${text}`));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(body));
  });
}
