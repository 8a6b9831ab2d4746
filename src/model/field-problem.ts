// Collects what is wrong with a message, field by field. A parser records every problem instead of stopping at the first,
// so that all of them can be fixed at once.

export interface FieldProblem {
  /** The field as the .proto file names it: "image", "command[2]", "healthcheck.path". Empty for the message itself. */
  readonly path: string;
  /** Continues the sentence after the path: "must be at least 0". Never quotes bytes that may be secret (K7). */
  readonly message: string;
}

export type ParsedMessage<T> =
  | { readonly kind: "valid"; readonly spec: T }
  | { readonly kind: "invalid"; readonly problems: readonly FieldProblem[] };

/** Records a problem. The parser continues with any value of the right type, which is never used. */
export type Refuse = (path: string, message: string) => void;

// A hostile message can have thousands of problems; the first few are enough.
const problemsMax = 32;

export function collectProblems<T>(parse: (refuse: Refuse) => T): ParsedMessage<T> {
  const problems: FieldProblem[] = [];
  const spec = parse((path, message) => {
    if (problems.length < problemsMax) problems.push({ path, message });
  });
  return problems.length === 0 ? { kind: "valid", spec } : { kind: "invalid", problems };
}

export function describeProblems(problems: readonly FieldProblem[]): string {
  return problems.map(({ path, message }) => (path === "" ? message : `${path} ${message}`)).join("; ");
}

const quotedLengthMax = 64;

/**
 * Quotes text from outside in a message: short, and in plain ASCII, so that it can neither break a line nor control a
 * terminal. JSON alone does not escape characters such as U+009B, which starts an escape sequence.
 */
export function quote(text: string): string {
  const short = text.length > quotedLengthMax ? `${text.slice(0, quotedLengthMax)}...` : text;
  return JSON.stringify(short).replaceAll(/[^ -~]/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

// Characters that must be written as escapes: those that control a terminal or change the text direction, and U+FFFD,
// which replaces invalid bytes when a file is decoded, and is rejected in files unless escaped.

export const hiddenCharacters = /[\u007f-\u009f\p{Cf}\p{Zl}\p{Zp}\ufffd]/u;
export const everyHiddenCharacter = new RegExp(hiddenCharacters, "gu");
