// One request as the server sees it, and the two kinds of answer.
import type { User } from "./resource.ts";

export interface ApiRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path, already escaped, e.g. /api/v1/namespaces/a/pods/b. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  readonly accept?: string;
  /** A JSON value. */
  readonly body?: unknown;
}

/** After authentication. */
export interface ServerRequest extends ApiRequest {
  readonly user: User;
  /** Names the field manager where the request does not. */
  readonly userAgent?: string;
}

export interface WholeAnswer {
  readonly kind: "whole";
  readonly status: number;
  /** A JSON value, or text for the few endpoints that speak it. Shared with the store: never change it. */
  readonly body: unknown;
  /** Absent: JSON, or plain text for a text. */
  readonly contentType?: string;
  readonly retryAfterSeconds?: number;
  /** Shown to the user by kubectl; the Warning header of HTTP. */
  readonly warnings?: readonly string[];
}

export interface StreamAnswer {
  readonly kind: "stream";
  /** Watch events; iterate once. */
  readonly values: AsyncIterable<unknown>;
  /** Ends the stream and frees what it holds. */
  close(): void;
}

export type ServerAnswer = WholeAnswer | StreamAnswer;
