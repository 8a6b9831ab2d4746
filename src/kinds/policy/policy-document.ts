// Parses the policy inside a message: a complete Kubernetes object as JSON, of which krane uses only the rules. Its own
// name, labels, finalizers and owners are ignored.
//
// - The rules go to the API server unchanged. Values that the API server would return in another form are rejected,
//   because the live object would differ from the desired one forever (K11).
// - Policies may hold credentials, in the headers that they match. No problem quotes a value (K7).
import { quote, type Refuse } from "../../model/field-problem.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** The rules of a policy; at least one of the two is set. */
export interface PolicyRules {
  readonly spec?: JsonObject;
  readonly specs?: readonly JsonObject[];
}

export const policyApiVersion = "cilium.io/v2";
export const ciliumPolicyKind = "CiliumNetworkPolicy";

const field = "policy";
// Far more than a policy that a person could review, and, even with managedFields, far less than the API server stores.
export const policyBytesMax = 256 * 1024;
// The CRD of CiliumNetworkPolicy has 11 levels below its spec.
const depthMax = 32;

export function parsePolicyDocument(bytes: Uint8Array, refuse: Refuse): PolicyRules {
  if (bytes.length === 0) refuse(field, "is required");
  else if (bytes.length > policyBytesMax) {
    refuse(field, `has ${bytes.length} bytes, more than ${policyBytesMax}`);
  } else {
    const document = parseJson(bytes);
    if (isObject(document)) return parseRules(document, refuse);
    refuse(field, document === undefined ? "is not valid JSON" : "must be a JSON object");
  }
  return {};
}

/** Undefined, which is not a JSON value, if the bytes are not JSON. */
function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}

function parseRules(document: JsonObject, refuse: Refuse): PolicyRules {
  requireText("apiVersion", document["apiVersion"], policyApiVersion, refuse);
  requireText("kind", document["kind"], ciliumPolicyKind, refuse);
  // Other programs write null for a field that was never set.
  const spec = document["spec"] ?? undefined;
  const specs = document["specs"] ?? undefined;
  if (spec === undefined && specs === undefined) refuse(field, "must have spec or specs");
  return {
    ...(spec !== undefined && { spec: parseRule(`${field}.spec`, spec, refuse) }),
    ...(specs !== undefined && { specs: parseList(`${field}.specs`, specs, refuse) }),
  };
}

function requireText(name: string, value: unknown, wanted: string, refuse: Refuse): void {
  if (value === wanted) return;
  const seen = typeof value === "string" ? `is ${quote(value)}` : "is not text";
  refuse(`${field}.${name}`, `must be ${quote(wanted)}, but ${value === undefined ? "is absent" : seen}`);
}

function parseList(path: string, value: unknown, refuse: Refuse): readonly JsonObject[] {
  if (Array.isArray(value) && value.length > 0) {
    return value.map((rule, index) => parseRule(`${path}[${index}]`, rule, refuse));
  }
  refuse(path, "must be a list of at least one rule");
  return [];
}

function parseRule(path: string, value: unknown, refuse: Refuse): JsonObject {
  if (!isObject(value)) {
    refuse(path, "must be a JSON object");
    return {};
  }
  const problem = problemOf(value, 1);
  if (problem !== undefined) {
    refuse(path, problem);
    return {};
  }
  const rule = withoutNulls(value) as JsonObject;
  // Cilium accepts a namespaced policy with a nodeSelector, but enforces none of it.
  if ("nodeSelector" in rule) refuse(`${path}.nodeSelector`, "is not for policies of a namespace");
  else if (!isObject(rule["endpointSelector"])) {
    refuse(`${path}.endpointSelector`, "is required: an object, {} for every pod of the namespace");
  }
  return rule;
}

/** Why the API server would not return a value unchanged. */
function problemOf(value: unknown, depth: number): string | undefined {
  if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER) {
    return "has a number too large to be exact";
  }
  if (typeof value === "string" && isBroken(value)) return "has text that is not valid Unicode";
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > depthMax) return `is nested deeper than ${depthMax} levels`;
  for (const [name, member] of Object.entries(value)) {
    const problem = isBroken(name) ? "has text that is not valid Unicode" : problemOf(member, depth + 1);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Whether the text has an unpaired surrogate, which UTF-8 cannot encode. */
function isBroken(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** A null member means the same as an absent one; the API server drops some of them and rejects others. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member)]));
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
