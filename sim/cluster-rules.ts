// What somebody puts between clients and the API server for a while: admission webhooks that refuse, fail or change what
// they see, and rights and tokens that are taken away.
import type { ServerRequest, WholeResponse } from "@krane/kube-apiserver";

export interface Rule {
  /** `actor` is who sends the request: "agent a.1", "people", "cluster". */
  matches(actor: string, request: ServerRequest): boolean;
  /** What the request gets instead of its effect. */
  readonly refusal?: Refusal;
  /** How long the refusal takes. */
  readonly afterMs?: number;
  /** What the server gets instead of the body. */
  change?(body: unknown): unknown;
}

export interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly message?: string;
  readonly retryAfterSeconds?: number;
}

export function refused({ status: code, reason, message = "injected", ...rest }: Refusal): WholeResponse {
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code };
  return { kind: "whole", status: code, body, ...rest };
}

export interface Place {
  readonly namespace: string;
  readonly plural: string;
  readonly name: string;
  readonly subresource: string;
}

/** What a path of the API names; "" for what it does not name. */
function placeIn(path: string): Place {
  const parts = path.split("/").slice(path.startsWith("/apis/") ? 4 : 3);
  const [namespace = ""] = parts[0] === "namespaces" && parts.length > 2 ? parts.splice(0, 2).slice(1) : [];
  const [plural = "", name = "", subresource = ""] = parts;
  return { namespace, plural, name, subresource };
}

const writes: ReadonlySet<string> = new Set(["POST", "PUT", "PATCH"]);

/** A webhook sees what is created and changed in a namespace, by anybody, but no status. */
function isAdmitted(namespace: string, plurals: readonly string[], { method, path }: ServerRequest): boolean {
  const place = placeIn(path);
  return (
    writes.has(method) &&
    place.namespace === namespace &&
    place.subresource === "" &&
    plurals.includes(place.plural)
  );
}

const admitted = ["replicasets", "deployments", "pods", "ciliumnetworkpolicies", "services"];

export function denyingWebhook(namespace: string): Rule {
  const message = 'admission webhook "policy.example" denied the request: not today';
  return {
    matches: (_, request) => isAdmitted(namespace, admitted, request),
    refusal: { status: 403, reason: "Forbidden", message },
  };
}

/** `afterMs`: its timeout. */
export function failingWebhook(namespace: string, afterMs: number): Rule {
  const message = 'failed calling webhook "policy.example": context deadline exceeded';
  return {
    matches: (_, request) => isAdmitted(namespace, admitted, request),
    refusal: { status: 500, reason: "InternalError", message },
    afterMs,
  };
}

/** Adds an annotation to everything, as injectors and policy engines do. */
export function annotatingWebhook(namespace: string): Rule {
  return {
    matches: (_, request) => isAdmitted(namespace, admitted, request),
    change(body) {
      if (Array.isArray(body)) return body;
      const { metadata = {} } = body as { readonly metadata?: Readonly<Record<string, unknown>> };
      const annotations = { ...(metadata["annotations"] ?? {}), "webhook.example/seen": "true" };
      return { ...(body as object), metadata: { ...metadata, annotations } };
    },
  };
}

/** An agent may not read or not write one kind any more. */
export function revokedRight(plural: string, mode: "read" | "write"): Rule {
  return {
    matches: (actor, { method, path }) =>
      actor.startsWith("agent") &&
      placeIn(path).plural === plural &&
      (method === "GET") === (mode === "read"),
    refusal: { status: 403, reason: "Forbidden", message: `cannot ${mode} ${plural}` },
  };
}

/** The API server does not accept the token of an agent. */
export function rejectedToken(agent: string): Rule {
  return {
    matches: (actor) => actor.startsWith(`agent ${agent}.`),
    refusal: { status: 401, reason: "Unauthorized", message: "Unauthorized" },
  };
}
