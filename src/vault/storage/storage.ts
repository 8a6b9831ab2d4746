// The interface of the storage for wrapped data keys. Its contract, which one test suite checks for every storage:
//
// - A write that create() or replace() acknowledged survives a crash.
// - A reader sees an object completely or not at all, also while it is written.
// - create() never overwrites: of many concurrent calls, one creates the object.
// - Nothing can be deleted. Without its data key, a value is lost.
//
// Every failure is a VaultError with the code `unavailable`, except for an abort, which rejects with the signal's reason.

export interface StoredObject {
  readonly bytes: Uint8Array;
  /** Changes whenever the object does; compared, never interpreted. */
  readonly version: string;
}

export interface VaultStorage {
  read(objectKey: string, signal: AbortSignal): Promise<StoredObject | undefined>;
  create(objectKey: string, bytes: Uint8Array, signal: AbortSignal): Promise<"created" | "exists">;
  /** Only if the object still has that version. */
  replace(
    objectKey: string,
    bytes: Uint8Array,
    version: string,
    signal: AbortSignal,
  ): Promise<"replaced" | "changed">;
  /** Every path with this prefix, in no particular order. Objects that change meanwhile may be missed. */
  list(prefix: string, signal: AbortSignal): AsyncIterable<string>;
  close(): Promise<void>;
}

/** A wrapped data key has about 200 bytes; anything larger than this is not one. */
export const objectBytesMax = 16 * 1024;
