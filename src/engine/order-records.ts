// Where the orders of one controller are kept for the next process. No stream replays an order, so without a record a
// restarted krane would know neither the order nor that the control plane may not know the object.
//
// - A record counts as an order, so records must be where tenants cannot write.
// - Each record has a number, and numbers only grow. So a delayed write of an older process cannot replace or remove
//   what a newer one has recorded.

export interface OrderRecord {
  readonly key: string;
  /** The object's id at the control plane. */
  readonly id: string;
  readonly number: bigint;
  /** A message of the stream in binary form, with the version that the order replaced. */
  readonly state: Uint8Array;
  /** A token of the caller. */
  readonly readinessId?: string;
}

/** "newer": nothing was changed, because there is a record with a higher number. */
export type RecordOutcome = "done" | "newer";

export interface OrderRecords {
  load(signal: AbortSignal): Promise<readonly OrderRecord[]>;
  put(record: OrderRecord, signal: AbortSignal): Promise<RecordOutcome>;
  /** Removes the record of a key, unless its number is higher. It is not an error if it does not exist. */
  remove(key: string, number: bigint, signal: AbortSignal): Promise<RecordOutcome>;
}
