// Requests and the two kinds of response: whole, and streamed.
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
  /** The field manager, if the request does not set one. */
  readonly userAgent?: string;
}

export interface WholeResponse {
  readonly kind: "whole";
  readonly status: number;
  /** A JSON value, or text for a few endpoints. Shared with the store: never change it. */
  readonly body: unknown;
  /** Absent: JSON, or plain text for a string. */
  readonly contentType?: string;
  readonly retryAfterSeconds?: number;
  /** Sent as Warning headers, which kubectl shows. */
  readonly warnings?: readonly string[];
}

export interface StreamResponse {
  readonly kind: "stream";
  /** Watch events, or the text of a log; iterate once. */
  readonly values: AsyncIterable<unknown>;
  /** Each value is text, and is sent as it is. */
  readonly isText?: true;
  /** Ends the stream and frees its resources. */
  close(): void;
}

export type ApiResponse = WholeResponse | StreamResponse;
