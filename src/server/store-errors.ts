// What a client hears when the store refuses.
import { Code, ConnectError } from "@connectrpc/connect";
import { StoreError } from "./store.ts";

/** `not_found` for an unknown region would look as if every object of the region had vanished. */
export function explainStoreError(error: unknown): ConnectError | undefined {
  if (!(error instanceof StoreError) || error.code !== "unknown_region") return undefined;
  return new ConnectError(error.message, Code.FailedPrecondition);
}
