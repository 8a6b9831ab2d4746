// A stub API server for SecretsService: every token is valid, and belongs to the pod whose number it ends with. Its
// responses have a realistic size and are the same bytes each time, apart from that number.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { replicaSets } from "../../src/kube/resources.ts";
import { annotationKeys } from "../../src/model/labels.ts";
import { sampleReplicaSetAnswer } from "../sample-objects.ts";
import { takeTask, tellParent } from "./parent.ts";
import { createBenchSeal } from "./secrets-seal.ts";

export interface SecretsApiTask {
  readonly deploymentId: string;
  readonly environmentId: string;
}

const { deploymentId, environmentId } = takeTask<SecretsApiTask>();
const labels = {
  "app.kubernetes.io/managed-by": "krane",
  "unkey.com/deployment.id": deploymentId,
  "unkey.com/environment.id": environmentId,
};
const sample = sampleReplicaSetAnswer("acme", "web");
const uid = "replica-set";
const seal = createBenchSeal().write(
  { kind: replicaSets, namespace: "acme", name: "web" },
  { environmentId, id: deploymentId },
);
const sealed = { ...sample.metadata?.annotations, [annotationKeys.seal]: seal };
const replicaSet = JSON.stringify({
  ...sample,
  metadata: { ...sample.metadata, uid, labels, annotations: sealed },
});
const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", name: "web", uid, controller: true };
const annotations = {
  ...sample.spec?.template?.metadata?.annotations,
  [annotationKeys.deploymentId]: deploymentId,
};
const spec = { ...sample.spec?.template?.spec, serviceAccountName: "default" };

function podAnswer(number: string): string {
  const metadata = {
    name: `web-${number}`,
    namespace: "acme",
    uid: number,
    creationTimestamp: sample.metadata?.creationTimestamp,
    labels,
    annotations,
    ownerReferences: [owner],
  };
  return JSON.stringify({ metadata, spec, status: { phase: "Running" } });
}

function reviewAnswer(body: string): string {
  const number = /\.(\d+)"/.exec(body)?.[1] ?? "";
  const extra = {
    "authentication.kubernetes.io/pod-name": [`web-${number}`],
    "authentication.kubernetes.io/pod-uid": [number],
  };
  const user = { username: "system:serviceaccount:acme:default", extra };
  return JSON.stringify({ status: { authenticated: true, audiences: ["krane"], user } });
}

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk: Buffer) => {
    body += chunk.toString("latin1");
  });
  request.on("end", () => {
    const { url = "" } = request;
    const pod = /\/pods\/web-(\d+)$/.exec(url)?.[1];
    const answer = pod === undefined ? (body === "" ? replicaSet : reviewAnswer(body)) : podAnswer(pod);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => {
  tellParent({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
