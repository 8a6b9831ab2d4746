// Describes an error for a log line: its type, message, code and stack, and those of its causes. Other properties (the
// request, its headers, the response) are not read, because they may contain secrets. For any thrown value, the
// description is bounded, and creating it does not throw.
import { scrub } from "./scrub.ts";

const messageCharsMax = 1024;
const codeCharsMax = 128;
const framesMax = 12;
const frameCharsMax = 256;
const depthMax = 5;
// All errors of one description together, so that nested aggregates stay small too.
const errorsMax = 16;

export interface ErrorDescription {
  readonly type: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
  readonly cause?: ErrorDescription;
  readonly errors?: readonly ErrorDescription[];
}

interface Walk {
  readonly seen: Set<unknown>;
  errorsLeft: number;
}

export function describeError(error: unknown): ErrorDescription {
  return describe(error, depthMax, { seen: new Set(), errorsLeft: errorsMax });
}

function describe(error: unknown, depthLeft: number, walk: Walk): ErrorDescription {
  if (depthLeft === 0 || walk.errorsLeft === 0) return { type: "Omitted", message: "too many causes" };
  if (walk.seen.has(error)) return { type: "Omitted", message: "an error that is its own cause" };
  walk.errorsLeft--;
  if (typeof error !== "object" || error === null)
    return { type: typeof error, message: scrub(String(error), messageCharsMax) };
  walk.seen.add(error);
  try {
    return describeObject(error, depthLeft, walk);
  } catch {
    // A getter or a proxy that throws must not turn one failure into another.
    return { type: "Unreadable", message: "an error with unreadable properties" };
  } finally {
    walk.seen.delete(error);
  }
}

function describeObject(error: object, depthLeft: number, walk: Walk): ErrorDescription {
  const { name, message, code, stack, cause, errors } = error as Partial<Record<string, unknown>>;
  return {
    type: typeof name === "string" ? scrub(name, codeCharsMax) : "object",
    // An object without a message is not printed: it may contain anything.
    message: typeof message === "string" ? scrub(message, messageCharsMax) : "",
    ...(typeof code === "string" ? { code: scrub(code, codeCharsMax) } : {}),
    ...(typeof code === "number" ? { code } : {}),
    ...(typeof stack === "string" ? { stack: framesOf(stack) } : {}),
    ...(cause === undefined ? {} : { cause: describe(cause, depthLeft - 1, walk) }),
    ...(Array.isArray(errors)
      ? { errors: errors.slice(0, walk.errorsLeft).map((inner) => describe(inner, depthLeft - 1, walk)) }
      : {}),
  };
}

/** Only the frames: the text before them repeats the message at its full length. */
function framesOf(stack: string): string {
  return stack
    .split("\n", 256)
    .filter((line) => line.startsWith("    at "))
    .slice(0, framesMax)
    .map((line) => scrub(line.trim(), frameCharsMax))
    .join("\n");
}

const causeDepthMax = 8;

/**
 * The first system error code in the chain of causes, such as ECONNREFUSED. It is safe to show even if the error's
 * message quotes a request.
 */
export function systemCodeOf(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < causeDepthMax && current instanceof Error; depth++) {
    if ("code" in current && typeof current.code === "string") return current.code;
    current = current.cause;
  }
  return undefined;
}
