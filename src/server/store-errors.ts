// Maps store errors to the errors that clients get.
import { Code, ConnectError } from "@connectrpc/connect";
import { errorCatalogue } from "../errors/error-catalogue.ts";
import { StoreError, type StoreErrorCode } from "./store.ts";

const retryAfterSeconds = 2;

const { codes } = errorCatalogue.StoreError;

const answers: Readonly<Record<(typeof codes)[StoreErrorCode]["rpc"], Code>> = {
  failed_precondition: Code.FailedPrecondition,
  already_exists: Code.AlreadyExists,
  invalid_argument: Code.InvalidArgument,
  aborted: Code.Aborted,
  unavailable: Code.Unavailable,
};

export function explainStoreError(error: unknown): ConnectError | undefined {
  if (!(error instanceof StoreError)) return undefined;
  const hint = error.code === "unavailable" ? { "retry-after": `${retryAfterSeconds}` } : undefined;
  return new ConnectError(error.message, answers[codes[error.code].rpc], hint);
}
