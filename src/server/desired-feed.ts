// One stream of desired state: every row above the cursor in ascending order of
// version, then every change as it happens.
//
// - The cursor moves with every row, whatever can be made of it.
// - Rows are read in small batches and only when the batch before was taken. A row that
//   changes between two reads is sent once, as it is then.
// - A cursor above the counter of the region comes from another life of this control
//   plane; its client would wait for ever for numbers that it takes for old ones.
import { Code, ConnectError } from "@connectrpc/connect";
import type { KindName, StateMessage } from "../kinds/kinds.ts";
import { type Store, stateOf } from "./store.ts";

const batchRowsMax = 100;

/** What a stream needs of a store. */
export type ChangeSource = Pick<Store, "changesSince" | "waitForChange">;

export async function* desiredFeed<K extends KindName>(
  store: ChangeSource,
  kind: K,
  region: string,
  versionLastSeen: bigint,
  signal: AbortSignal,
): AsyncGenerator<StateMessage<K>, never> {
  let cursor = versionLastSeen;
  for (;;) {
    signal.throwIfAborted();
    const { rows, counter } = await store.changesSince(region, kind, cursor, batchRowsMax);
    if (cursor > counter) {
      const message = `version ${cursor} is above the newest of region ${region}, ${counter}: begin again from 0`;
      throw new ConnectError(message, Code.OutOfRange);
    }
    for (const row of rows) {
      yield stateOf(kind, row);
      cursor = row.version;
    }
    if (rows.length === 0) await store.waitForChange(region, counter, signal);
  }
}
