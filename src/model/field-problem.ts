// What is wrong with a message, field by field. A parser records every problem instead of stopping
// at the first, so that a person repairs a message in one go.

export interface FieldProblem {
  /** The field as the .proto file names it: "image", "command[2]", "healthcheck.path". */
  readonly path: string;
  /** Reads on after the path: "must be at least 0". Never quotes bytes that may hold secrets (K7). */
  readonly message: string;
}

export type ParsedMessage<T> =
  | { readonly kind: "valid"; readonly spec: T }
  | { readonly kind: "invalid"; readonly problems: readonly FieldProblem[] };

/** Records a problem. The parser goes on with any value of the right type; nobody will see it. */
export type Refuse = (path: string, message: string) => void;

// A hostile message can be wrong in thousands of places; a person reads the first few.
const problemsMax = 32;

export function collectProblems<T>(parse: (refuse: Refuse) => T): ParsedMessage<T> {
  const problems: FieldProblem[] = [];
  const spec = parse((path, message) => {
    if (problems.length < problemsMax) problems.push({ path, message });
  });
  return problems.length === 0 ? { kind: "valid", spec } : { kind: "invalid", problems };
}

export function describeProblems(problems: readonly FieldProblem[]): string {
  return problems.map(({ path, message }) => `${path} ${message}`).join("; ");
}

const quotedLengthMax = 64;

/**
 * Text of others inside a message: short, and in plain ASCII, so that it can neither break a line nor
 * drive a terminal. JSON alone leaves characters such as U+009B, which begins an escape sequence, as they are.
 */
export function quote(text: string): string {
  const short = text.length > quotedLengthMax ? `${text.slice(0, quotedLengthMax)}...` : text;
  return JSON.stringify(short).replaceAll(/[^ -~]/g, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
