// The base of every error that callers, operators or scripts tell apart by a code. A class gets its codes from its part
// of the catalogue, so a code that is not documented does not compile. Only types come from there: throwing an error
// loads no texts.
import type { ErrorClassName, ErrorCode } from "./error-catalogue.ts";

export abstract class CodedError<Name extends ErrorClassName> extends Error {
  abstract override readonly name: Name;
  readonly code: ErrorCode<Name>;

  constructor(code: ErrorCode<Name>, message: string, options?: { readonly cause?: unknown }) {
    // A cause of undefined would show up in whatever prints the error.
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }
}
