// Problems of a configuration, with the setting, the location and the remedy. A problem never quotes a string value,
// because a token pasted into the wrong setting would end up in a log (K7).

/** Where a value came from. */

export type Origin =
  | { readonly kind: "flag"; readonly name: string }
  | { readonly kind: "env"; readonly name: string }
  | { readonly kind: "file"; readonly path: string; readonly line?: number }
  | { readonly kind: "default" };

export interface ConfigProblem {
  /** The setting, for example "control.url"; empty for a problem of the whole file. */
  readonly path: string;
  /** The file, variable or flag with the problem; absent when the setting is not set anywhere. */
  readonly where?: string;
  /** Line in the file, from 1. */
  readonly line?: number;
  readonly message: string;
  readonly remedy: string;
}

/** The effective value of one setting, safe to show, and its origin. */
export interface SettingOrigin {
  readonly path: string;
  /** The value as TOML; secrets are redacted. */
  readonly shown: string;
  readonly origin: Origin;
}

export function problemAt(
  path: string,
  origin: Origin | undefined,
  message: string,
  remedy: string,
): ConfigProblem {
  return { path, ...place(origin), message, remedy };
}

function place(origin: Origin | undefined): { where?: string; line?: number } {
  switch (origin?.kind) {
    case "flag":
      return { where: `--${origin.name}` };
    case "env":
      return { where: origin.name };
    case "file":
      return { where: origin.path, ...(origin.line === undefined ? {} : { line: origin.line }) };
    default:
      return {};
  }
}

/** Sorts problems by line. Those without a line keep their order and come last. */
export function sortProblems(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const lineOf = (problem: ConfigProblem) => problem.line ?? Number.MAX_SAFE_INTEGER;
  return [...problems].sort((a, b) => lineOf(a) - lineOf(b));
}

// The result of parsing one value: the parsed value, or a message and a remedy. The message is written to follow the
// setting's name.

export type Parsed<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "bad"; readonly message: string; readonly remedy: string };

export function ok<T>(value: T): Parsed<T> {
  return { kind: "ok", value };
}

export function bad(message: string, remedy: string): Parsed<never> {
  return { kind: "bad", message, remedy };
}
