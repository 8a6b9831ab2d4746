// Where wrapped data keys are kept. The contract, which one suite checks for every
// storage:
//
// - What create() or replace() has acknowledged is there after a crash.
// - A reader sees an object whole or not at all, also while it is written.
// - create() never overwrites: of many at the same time, one creates it.
// - There is no way to delete. A data key that is gone takes every value under it along.
//
// Every failure is a VaultError with the code `unavailable`, but for the reason of the
// caller's own signal.

export interface StoredObject {
  readonly bytes: Uint8Array;
  /** Changes whenever the object does; compared, never interpreted. */
  readonly version: string;
}

export interface VaultStorage {
  read(objectKey: string, signal: AbortSignal): Promise<StoredObject | undefined>;
  create(objectKey: string, bytes: Uint8Array, signal: AbortSignal): Promise<"created" | "exists">;
  /** Only where the object still is the one of that version. */
  replace(
    objectKey: string,
    bytes: Uint8Array,
    version: string,
    signal: AbortSignal,
  ): Promise<"replaced" | "changed">;
  /** Every path that begins so, in no particular order. Objects that come or go meanwhile may be missed. */
  list(prefix: string, signal: AbortSignal): AsyncIterable<string>;
  close(): Promise<void>;
}

/** A wrapped data key has about 200 bytes; whatever is larger is not one. */
export const objectBytesMax = 16 * 1024;
