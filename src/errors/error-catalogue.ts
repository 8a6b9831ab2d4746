// Every error code that users, operators and callers can see. Error classes take their codes from here, the command
// line its exit codes, and the server its RPC codes. docs/errors.md is generated from it and checked in both directions.
import { agentErrors } from "./agent-errors.ts";
import { commandErrors } from "./command-errors.ts";
import type { ErrorClassEntry, ErrorEntry } from "./error-entry.ts";
import { peerErrors } from "./peer-errors.ts";
import { serverErrors } from "./server-errors.ts";

export const errorCatalogue = { ...agentErrors, ...peerErrors, ...serverErrors, ...commandErrors };

export type ErrorClassName = keyof typeof errorCatalogue;

/** The codes of one class. */
export type ErrorCode<Name extends ErrorClassName> = keyof (typeof errorCatalogue)[Name]["codes"] & string;

const classes: Readonly<Record<string, ErrorClassEntry>> = errorCatalogue;

export function findErrorEntry({
  name,
  code,
}: {
  name: ErrorClassName;
  code: string;
}): ErrorEntry | undefined {
  return classes[name]?.codes[code];
}
