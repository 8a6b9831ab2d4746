// Renders errors for people. Expected failures get one line; only a bug shows its stack, because only then does the
// reader need the code.

import { ConfigError } from "../config/error.ts";
import { printableLines, scrub } from "../telemetry/scrub.ts";
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
  // A message may quote user input with control characters.
  const lines = printableLines(scrub(message, charsMax)).split("\n");
  return lines.map((line) => `krane: ${line}\n`).join("");
}

/** Appends the cause, which is often the useful half: no such file, permission denied. */
export function withReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const reason = error.cause instanceof Error ? error.cause.message : "";
  return error.message.includes(reason) ? error.message : `${error.message}: ${reason}`;
}
