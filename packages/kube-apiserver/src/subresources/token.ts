// Handles serviceaccounts/<name>/token: TokenRequests.

import { invalidValue } from "../causes.ts";
import { type Scope, timestampOf } from "../core.ts";
import { isObject, type JsonObject, listAt, stringAt, valueAt } from "../json.ts";
import { badRequest, conflict, invalid, notFound } from "../status-error.ts";
import { formatTimestamp } from "../timestamps.ts";
import { issuer, type TokenSubject } from "../tokens.ts";
import type { KubeStatusCause } from "../types.ts";
import { liveObject } from "../update.ts";

const expiryDefaultSeconds = 3600;
const expiryMinSeconds = 600;
const expiryMaxSeconds = 2 ** 32;

export function requestToken(scope: Scope, body: unknown): JsonObject {
  const { core, namespace, name } = scope;
  const account = liveObject(scope);
  if (!isObject(body)) throw badRequest("the object provided is unrecognized (must be of type TokenRequest)");
  const expirationSeconds = Number(valueAt(body, "spec", "expirationSeconds") ?? expiryDefaultSeconds);
  checkExpiry(expirationSeconds);
  const sent = listAt(body, "spec", "audiences").map(String);
  const audiences = sent.length > 0 ? sent : [issuer];
  const uid = stringAt(account, "metadata", "uid") ?? "";
  const reference = valueAt(body, "spec", "boundObjectRef") ?? null;
  const pod = isObject(reference) ? boundPod(scope, reference) : undefined;
  const subject: TokenSubject = { namespace, name, uid, ...(pod === undefined ? {} : { pod }) };
  const token = core.tokens.issue(subject, audiences, expirationSeconds);
  const expiresMs = core.clock.wallMs() + expirationSeconds * 1000;
  return {
    kind: "TokenRequest",
    apiVersion: "authentication.k8s.io/v1",
    metadata: { name, namespace, uid, creationTimestamp: timestampOf(core) },
    spec: { audiences, expirationSeconds, boundObjectRef: reference },
    status: { token, expirationTimestamp: formatTimestamp(expiresMs) },
  };
}

function checkExpiry(seconds: number): void {
  const field = "spec.expirationSeconds";
  const causes: KubeStatusCause[] = [];
  if (seconds < expiryMinSeconds)
    causes.push(invalidValue(field, seconds, "may not specify a duration less than 10 minutes"));
  if (seconds > expiryMaxSeconds)
    causes.push(invalidValue(field, seconds, "may not specify a duration larger than 2^32 seconds"));
  if (causes.length > 0) throw invalid({ group: "authentication.k8s.io", kind: "TokenRequest" }, "", causes);
}

function boundPod(scope: Scope, reference: JsonObject): TokenSubject["pod"] {
  const { core, namespace } = scope;
  const kind = stringAt(reference, "kind");
  if (kind !== "Pod") throw badRequest(`cannot bind token for serviceaccount to type ${kind}`);
  const name = stringAt(reference, "name") ?? "";
  const place = { group: "", plural: "pods" };
  const pod = core.store.get({ ...place, namespace, name });
  if (pod === undefined) throw notFound(place, name);
  const uid = stringAt(pod, "metadata", "uid") ?? "";
  const sent = stringAt(reference, "uid");
  if (sent !== undefined && sent !== uid) {
    throw conflict(
      place,
      name,
      `the UID in the bound object reference (${sent}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  const account = stringAt(pod, "spec", "serviceAccountName");
  if (account !== scope.name) {
    throw badRequest(
      `cannot bind token for serviceaccount ${JSON.stringify(scope.name)} to pod running with different serviceaccount name.`,
    );
  }
  const node = stringAt(pod, "spec", "nodeName");
  return { name, uid, ...(node ? { node: nodeOf(scope, node) } : {}) };
}

function nodeOf({ core }: Scope, name: string): { name: string; uid?: string } {
  const node = core.store.get({ group: "", plural: "nodes", namespace: "", name });
  const uid = stringAt(node, "metadata", "uid");
  return uid === undefined ? { name } : { name, uid };
}
