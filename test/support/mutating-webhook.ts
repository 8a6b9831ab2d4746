// A mutating webhook as programs of a cluster install them: an HTTPS server on loopback that the real API server calls, with
// the certificate of the API server itself. What it does to objects can change at any time, without waiting for the server.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import type { TestCluster } from "./cluster-under-test.ts";

export interface MutatingWebhook {
  /** The spec that it gives an object; undefined: it changes nothing. */
  specOf: ((object: KubeObject) => unknown) | undefined;
  /** How often it changed an object. */
  changes: number;
}

interface AdmissionReview {
  readonly request: { readonly uid: string; readonly object: KubeObject };
}

/** Installs it for one kind in one namespace; it is gone after the test. */
export async function startMutatingWebhook(
  t: TestContext,
  cluster: TestCluster,
  { group, version, plural }: ResourceKind,
  namespace: string,
): Promise<MutatingWebhook> {
  const webhook: MutatingWebhook = { specOf: undefined, changes: 0 };
  const url = await listen(t, cluster, webhook);
  const name = `${namespace}.example.com`;
  const client = { url, caBundle: Buffer.from(cluster.ca).toString("base64") };
  const rule = {
    apiGroups: [group],
    apiVersions: [version],
    operations: ["CREATE", "UPDATE"],
    resources: [plural],
  };
  const body = {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: { name },
    webhooks: [
      {
        name,
        clientConfig: client,
        rules: [rule],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        failurePolicy: "Fail",
      },
    ],
  };
  const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
  const answer = await cluster.request({ method: "POST", path, body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  t.after(() => cluster.request({ method: "DELETE", path: `${path}/${name}` }));
  return webhook;
}

async function listen(t: TestContext, { dir }: TestCluster, webhook: MutatingWebhook): Promise<string> {
  const [cert, key] = await Promise.all(
    ["apiserver.crt", "apiserver.key"].map((name) => readFile(join(dir, "certs", name))),
  );
  const server = createServer({ cert, key }, (request, response) => {
    void review(request, webhook).then(
      (body) => response.setHeader("content-type", "application/json").end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/mutate`;
}

async function review(asked: IncomingMessage, webhook: MutatingWebhook) {
  const { request } = JSON.parse(await text(asked)) as AdmissionReview;
  const value = webhook.specOf?.(request.object);
  const operations = value === undefined ? [] : [{ op: "replace", path: "/spec", value }];
  if (value !== undefined) webhook.changes += 1;
  const patch = Buffer.from(JSON.stringify(operations)).toString("base64");
  const response = { uid: request.uid, allowed: true, patchType: "JSONPatch", patch };
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response };
}
