// The base class of all errors with a code. A class gets its codes from its part
// of the catalogue, so an undocumented code does not compile. Only types are imported: throwing an error
// does not load the texts.
import type { ErrorClassName, ErrorCode } from "./error-catalogue.ts";

export abstract class CodedError<Name extends ErrorClassName> extends Error {
  abstract override readonly name: Name;
  readonly code: ErrorCode<Name>;

  constructor(code: ErrorCode<Name>, message: string, options?: { readonly cause?: unknown }) {
    // An explicit cause of undefined would be printed with the error.
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }
}
