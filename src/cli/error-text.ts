// Errors as lines for a person. What is expected to go wrong gets one line; only a bug
// shows its stack, because only then the reader has to look at code.

import { ConfigError } from "../config/error.ts";
import { printableLines } from "../telemetry/printable.ts";
import { scrub } from "../telemetry/scrub.ts";
import { isBug, leavesOf } from "./exit-codes.ts";

const charsMax = 8_192;

export function renderErrors(error: unknown): string {
  return leavesOf(error)
    .map((each) => {
      if (isBug(each)) return renderError(each, "bug");
      return renderError(each instanceof ConfigError ? withReason(each) : each, "failure");
    })
    .join("");
}

export function renderError(error: unknown, kind: "bug" | "failure"): string {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  if (kind === "bug")
    return `krane: ${scrub(`this is a bug in krane, please report it: ${stack ?? message}`, charsMax)}\n`;
  // A message quotes what was typed, which a script may have from anywhere.
  const lines = printableLines(scrub(message, charsMax)).split("\n");
  return lines.map((line) => `krane: ${line}\n`).join("");
}

/** What the file system said (no such file, permission denied) is the useful half. */
export function withReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const reason = error.cause instanceof Error ? error.cause.message : "";
  return error.message.includes(reason) ? error.message : `${error.message}: ${reason}`;
}
