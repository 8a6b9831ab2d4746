// Parses the health check of a deployment, a JSON document in a bytes field. A deployment with an invalid health check
// is rejected: without probes it would look healthy while nothing checks it.
//
// The original krane treated every method other than POST as GET. This one rejects other methods, because a rejected
// spec is easier to notice than a probe that uses another method than requested.
import { quote, type Refuse } from "../../model/field-problem.ts";

export interface Healthcheck {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** In this and the numbers below, 0 means the default of Kubernetes. */
  readonly intervalSeconds: number;
  readonly timeoutSeconds: number;
  readonly failureThreshold: number;
  readonly initialDelaySeconds: number;
}

const field = "healthcheck";
const bytesMax = 8 * 1024;
const pathLengthMax = 2048;
const secondsMax = 86_400;
const failuresMax = 1_000;

/** Undefined if the message has no health check: absent, empty or null. */
export function parseHealthcheck(bytes: Uint8Array | undefined, refuse: Refuse): Healthcheck | undefined {
  if (bytes === undefined || bytes.length === 0) return undefined;
  if (bytes.length > bytesMax) {
    refuse(field, `has ${bytes.length} bytes, more than ${bytesMax}`);
    return undefined;
  }
  const json = parseJson(bytes);
  if (json === null) return undefined;
  if (typeof json !== "object" || Array.isArray(json)) {
    refuse(field, json === undefined ? "is not valid JSON" : "must be a JSON object");
    return undefined;
  }
  const members: Readonly<Record<string, unknown>> = { ...json };
  const numberOf = (name: string, max: number) => parseNumber(name, members[name], max, refuse);
  return {
    method: parseMethod(members["method"], refuse),
    path: parsePath(members["path"], refuse),
    intervalSeconds: numberOf("intervalSeconds", secondsMax),
    timeoutSeconds: numberOf("timeoutSeconds", secondsMax),
    failureThreshold: numberOf("failureThreshold", failuresMax),
    initialDelaySeconds: numberOf("initialDelaySeconds", secondsMax),
  };
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Undefined, which is not a JSON value, if the bytes are not JSON. */
function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes));
  } catch {
    return undefined;
  }
}

function parseMethod(value: unknown, refuse: Refuse): Healthcheck["method"] {
  if (value === "GET" || value === "POST") return value;
  if (!isUnset(value)) refuse(`${field}.method`, "must be GET or POST");
  return "GET";
}

/** The path becomes part of a URL, and for POST part of an argument to a program. */
function parsePath(value: unknown, refuse: Refuse): string {
  if (isUnset(value)) return "/";
  const path = `${field}.path`;
  if (typeof value !== "string") refuse(path, "must be text");
  else if (!value.startsWith("/")) refuse(path, `must start with "/", but is ${quote(value)}`);
  else if (value.length > pathLengthMax) refuse(path, `is longer than ${pathLengthMax} characters`);
  else if (!/^[!-~]*$/.test(value)) {
    refuse(path, "has a space, a control character or a letter outside ASCII");
  } else return value;
  return "/";
}

function parseNumber(name: string, value: unknown, max: number, refuse: Refuse): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max) return value;
  refuse(`${field}.${name}`, `must be a whole number from 0 to ${max}`);
  return 0;
}

/** How Go producers write a field that was never set. */
function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}
