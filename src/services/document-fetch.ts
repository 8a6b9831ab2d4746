// Fetches one small text from an instance of a tenant. What answers there is not to be trusted: time, size
// and headers have limits, nothing is followed or unpacked, and every way in which it can fail is a value.
import { request } from "node:http";
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
  /** It answered something else than 200. */
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
        error instanceof DeadlineError ? `no answer within ${limits.timeoutMs} ms` : connectionReason(error);
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
      // A connection of its own: one that is kept could answer the next question with leftovers of this one.
      { host: ip, port, path, method: "GET", headers, agent: false, maxHeaderSize: headerBytesMax, signal },
      (answer) => {
        const end = (outcome: DocumentOutcome) => {
          resolve(outcome);
          call.destroy();
        };
        const { statusCode: status = 0 } = answer;
        if (status !== 200) {
          end({ kind: "refused", status });
          return;
        }
        const chunks: Buffer[] = [];
        let size = 0;
        answer.on("data", (chunk: Buffer) => {
          size += chunk.length;
          if (size > bodyBytesMax) end({ kind: "too-large" });
          else chunks.push(chunk);
        });
        answer.on("end", () => end(textOf(Buffer.concat(chunks))));
        answer.on("error", reject);
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

/** A word such as ECONNREFUSED, and no address: whoever called knows whom they asked for. */
function connectionReason(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "the connection failed";
}
