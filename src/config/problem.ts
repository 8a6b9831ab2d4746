// What is wrong with a configuration, and where it was written. A problem names the
// setting, the place and the way out; it never quotes a string value, because a token
// pasted into the wrong setting would end in a log (K7).

/** Where a value came from. */
export type Origin =
  | { readonly kind: "flag"; readonly name: string }
  | { readonly kind: "env"; readonly name: string }
  | { readonly kind: "file"; readonly path: string; readonly line?: number }
  | { readonly kind: "default" };

export interface ConfigProblem {
  /** The setting, such as "control.url"; empty for a problem of the file as a whole. */
  readonly path: string;
  /** The file, variable or flag to look at; absent when the setting is nowhere. */
  readonly where?: string;
  /** Line in the file, from 1. */
  readonly line?: number;
  readonly message: string;
  readonly remedy: string;
}

/** The effective value of one setting as a person may see it, and its origin. */
export interface SettingOrigin {
  readonly path: string;
  /** The value in TOML spelling; secrets are redacted. */
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

/** In the order of the file from top to bottom; what has no line keeps its order and comes last. */
export function sortProblems(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const lineOf = (problem: ConfigProblem) => problem.line ?? Number.MAX_SAFE_INTEGER;
  return [...problems].sort((a, b) => lineOf(a) - lineOf(b));
}
