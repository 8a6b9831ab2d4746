// The OpenAPI document of a deployment, from one of its running instances. Whoever asks chooses the
// deployment and the path; where the instance is comes from what Kubernetes says about its pods and from
// nothing else, so a call cannot be turned into one to some other address.
import { BlockList, isIP, isIPv6 } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import type { DocumentOutcome, FetchDocument } from "./document-fetch.ts";

export interface ScrapeTarget {
  /** Where its running instances listen. */
  readonly sockets: readonly { readonly ip: string; readonly port: number }[];
}

export async function scrapeDocument(
  target: ScrapeTarget | undefined,
  path: string,
  fetchDocument: FetchDocument,
  signal: AbortSignal,
): Promise<string> {
  const problem = pathProblem(path);
  if (problem !== undefined) throw new ConnectError(`path: ${problem}`, Code.InvalidArgument);
  if (target === undefined) throw new ConnectError("krane has no such deployment", Code.NotFound);
  const socket = target.sockets.find(({ ip }) => isPodAddress(ip));
  if (socket === undefined) {
    throw new ConnectError("no instance of the deployment is running", Code.FailedPrecondition);
  }
  const outcome = await fetchDocument({ ...socket, path }, signal);
  if (outcome.kind === "document") return outcome.text;
  throw refusal(outcome);
}

const pathCharsMax = 2_048;
const pathPattern =
  /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*(?:\?(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?]|%[0-9A-Fa-f]{2})*)?$/;

/** Reads on after the name of the field; undefined where all is well. */
export function pathProblem(path: string): string | undefined {
  if (!path.startsWith("/") || path.startsWith("//")) return "must begin with one slash";
  if (path.length > pathCharsMax) return `must have at most ${pathCharsMax} characters`;
  if (!pathPattern.test(path)) return "has characters that a path cannot have";
  const segments = (path.split("?")[0] ?? "").split("/").map((part) => part.replaceAll(/%2e/gi, "."));
  return segments.includes("..") || segments.includes(".") ? "must not have . or .. in it" : undefined;
}

// No pod has such an address. A cluster in which one claims to is not one to be believed.
const neverPods = blockList([
  ["0.0.0.0", 8, "ipv4"],
  ["127.0.0.0", 8, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  ["224.0.0.0", 3, "ipv4"],
  ["::", 127, "ipv6"],
  ["fe80::", 10, "ipv6"],
  ["ff00::", 8, "ipv6"],
]);

function blockList(subnets: readonly (readonly [string, number, "ipv4" | "ipv6"])[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) list.addSubnet(...subnet);
  return list;
}

function isPodAddress(ip: string): boolean {
  return isIP(ip) !== 0 && !neverPods.check(ip, isIPv6(ip) ? "ipv6" : "ipv4");
}

function refusal(outcome: Exclude<DocumentOutcome, { kind: "document" }>): ConnectError {
  switch (outcome.kind) {
    case "refused":
      return new ConnectError(`the instance answered with status ${outcome.status}`, Code.FailedPrecondition);
    case "too-large":
      return new ConnectError("the document is larger than 1 MiB", Code.ResourceExhausted);
    case "not-text":
      return new ConnectError("the document is not UTF-8 text", Code.FailedPrecondition);
    case "unreachable":
      return new ConnectError(`the instance cannot be reached: ${outcome.reason}`, Code.Unavailable);
  }
}
