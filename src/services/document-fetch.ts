// Fetches the OpenAPI document of a deployment from one of its running instances.
//
// - The instance is untrusted: time, size and headers are limited, redirects are not followed, nothing is decompressed,
//   and every failure is a value.
// - The caller chooses the deployment and the path. The address comes only from what Kubernetes says about the pods, so
//   a call cannot be directed to another address.
import { request } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";

export interface DocumentAddress {
  readonly ip: string;
  readonly port: number;
  /** With its query, already checked. */
  readonly path: string;
}

export type DocumentOutcome =
  | { readonly kind: "document"; readonly text: string }
  /** The status was not 200. */
  | { readonly kind: "refused"; readonly status: number }
  | { readonly kind: "too-large" }
  /** It is not UTF-8. */
  | { readonly kind: "not-text" }
  | { readonly kind: "unreachable"; readonly reason: string };

export type FetchDocument = (address: DocumentAddress, signal: AbortSignal) => Promise<DocumentOutcome>;

export interface DocumentLimits {
  readonly timeoutMs: number;
  readonly bodyBytesMax: number;
}

export const defaultDocumentLimits: DocumentLimits = { timeoutMs: 10_000, bodyBytesMax: 1024 * 1024 };

const headerBytesMax = 16 * 1024;

export function createDocumentFetch(
  limits: DocumentLimits,
  { clock }: { readonly clock: Clock },
): FetchDocument {
  return async (address, signal) => {
    try {
      return await withTimeout(clock, limits.timeoutMs, signal, (whole) => get(address, limits, whole));
    } catch (error) {
      signal.throwIfAborted();
      const reason =
        error instanceof DeadlineError
          ? `no response within ${limits.timeoutMs} ms`
          : connectionReason(error);
      return { kind: "unreachable", reason };
    }
  };
}

function get(
  { ip, port, path }: DocumentAddress,
  { bodyBytesMax }: DocumentLimits,
  signal: AbortSignal,
): Promise<DocumentOutcome> {
  return new Promise((resolve, reject) => {
    const headers = {
      accept: "application/json, application/yaml, text/*;q=0.5",
      "accept-encoding": "identity",
    };
    const call = request(
      // A new connection each time: a reused one could carry leftovers of the previous response.
      { host: ip, port, path, method: "GET", headers, agent: false, maxHeaderSize: headerBytesMax, signal },
      (response) => {
        const end = (outcome: DocumentOutcome) => {
          resolve(outcome);
          call.destroy();
        };
        const { statusCode: status = 0 } = response;
        if (status !== 200) {
          end({ kind: "refused", status });
          return;
        }
        const chunks: Buffer[] = [];
        let size = 0;
        response.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > bodyBytesMax) end({ kind: "too-large" });
          else chunks.push(chunk);
        });
        response.on("end", () => end(textOf(Buffer.concat(chunks))));
        response.on("error", reject);
      },
    );
    call.on("error", reject);
    call.end();
  });
}

function textOf(body: Buffer): DocumentOutcome {
  try {
    return { kind: "document", text: new TextDecoder("utf-8", { fatal: true }).decode(body) };
  } catch {
    return { kind: "not-text" };
  }
}

/** An error code such as ECONNREFUSED, without the address, which the caller must not learn. */
function connectionReason(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "the connection failed";
}

interface ScrapeTarget {
  /** The addresses of the running instances. */
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

/** The problem with a path, to follow the field's name; undefined when the path is valid. */
export function pathProblem(path: string): string | undefined {
  if (!path.startsWith("/") || path.startsWith("//")) return "must begin with one slash";
  if (path.length > pathCharsMax) return `must have at most ${pathCharsMax} characters`;
  if (!pathPattern.test(path)) return "has characters that a path cannot have";
  const segments = (path.split("?")[0] ?? "").split("/").map((part) => part.replaceAll(/%2e/gi, "."));
  return segments.includes("..") || segments.includes(".") ? "must not have . or .. in it" : undefined;
}

// No real pod has an address in these ranges, so a pod that claims one is not trusted.
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
