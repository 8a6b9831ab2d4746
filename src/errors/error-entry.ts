// What the catalogue says about one class of errors and about one code.
import type { RpcAnswer } from "./rpc-answers.ts";

/** The exit codes that an error can lead to, by the names that the command line has for them. */
export type ErrorExit =
  | "failure"
  | "notFound"
  | "usage"
  | "unreachable"
  | "denied"
  | "config"
  | "commandUnusable"
  | "commandMissing";

/** The texts are Markdown and go to docs/errors.md, which people read at 3 a.m.: one plain sentence, one remedy. */
export interface ErrorEntry {
  /** Left out where no command ends with it. */
  readonly exit?: ErrorExit;
  /** What the services of the class answer with; left out where no caller gets to hear of it. */
  readonly rpc?: RpcAnswer;
  /** What SecretsService answers with, where that is not `rpc`. */
  readonly rpcOfSecrets?: RpcAnswer;
  readonly means: string;
  readonly remedy: string;
}

export interface ErrorClassEntry {
  /** The heading on the page: where the errors come from. */
  readonly title: string;
  /** Where somebody meets them. */
  readonly about: string;
  readonly codes: Readonly<Record<string, ErrorEntry>>;
}

export type ErrorClasses = Readonly<Record<string, ErrorClassEntry>>;
