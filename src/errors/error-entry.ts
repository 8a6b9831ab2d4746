// The catalogue's entries for an error class and for one of its codes.
import type { RpcCode } from "./rpc-codes.ts";

/** The exit codes of errors, by their names in src/cli. */
export type ErrorExit =
  | "failure"
  | "notFound"
  | "usage"
  | "unreachable"
  | "denied"
  | "config"
  | "commandUnusable"
  | "commandMissing";

/** The texts are Markdown for docs/errors.md: one plain sentence, one remedy. */
export interface ErrorEntry {
  /** Absent if no command exits with it. */
  readonly exit?: ErrorExit;
  /** The RPC code that callers get; absent if no caller gets this error. */
  readonly rpc?: RpcCode;
  /** The RPC code that callers of SecretsService get, if it is not `rpc`. */
  readonly rpcOfSecrets?: RpcCode;
  readonly means: string;
  readonly remedy: string;
}

export interface ErrorClassEntry {
  /** The heading on the page: where the errors come from. */
  readonly title: string;
  /** Where the errors appear. */
  readonly about: string;
  readonly codes: Readonly<Record<string, ErrorEntry>>;
}

export type ErrorClasses = Readonly<Record<string, ErrorClassEntry>>;
