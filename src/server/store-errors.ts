// What a client hears when the store refuses.
import { Code, ConnectError } from "@connectrpc/connect";
import { StoreError } from "./store.ts";

const retryAfterSeconds = 2;

export function explainStoreError(error: unknown): ConnectError | undefined {
  if (!(error instanceof StoreError)) return undefined;
  switch (error.code) {
    // `not_found` for an unknown region would look as if every object of the region had vanished.
    case "unknown_region":
      return new ConnectError(error.message, Code.FailedPrecondition);
    case "unavailable":
      return new ConnectError(error.message, Code.Unavailable, { "retry-after": `${retryAfterSeconds}` });
    case "incomplete":
      return new ConnectError(error.message, Code.InvalidArgument);
    case "name_taken":
      return new ConnectError(error.message, Code.AlreadyExists);
    case "name_changed":
    case "unreadable":
    case "in_use":
      return new ConnectError(error.message, Code.FailedPrecondition);
    case "version_mismatch":
      return new ConnectError(error.message, Code.Aborted);
  }
}
