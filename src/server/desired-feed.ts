// One stream of desired state: every row above the cursor in ascending order of
// version, then every change as it happens.
//
// - The cursor moves past every row, even one that cannot be read, or that is too large for the client.
// - Rows are read in small batches, and only after the previous batch was taken. A row that
//   changes between two reads is sent once, in its newest state.
// - A cursor of another incarnation means nothing, and the stream starts at 0. When the
//   database starts a new incarnation, the stream ends.
// - A cursor above the region's counter, of a client that names no incarnation, was issued
//   before the database was restored or replaced. It is rejected, because its client would
//   treat every new version as old. An agent of the original treats none as old, and never
//   takes its cursor back: for it the stream starts at 0.
import { Code, ConnectError } from "@connectrpc/connect";
import type { KindName, StateMessage } from "../kinds/kinds.ts";
import { limitedState } from "./message-limit.ts";
import { type ServedState, turnedAway } from "./served-incarnation.ts";
import type { Store } from "./store.ts";

const batchRowsMax = 100;

/** What a stream needs from a store. */
export type ChangeSource = Pick<Store, "changesSince" | "waitForChange">;

/** Resolves with whether the client's cursor means something in this incarnation. Throws if it must not be answered. */
export type Receive = (state: ServedState) => Promise<boolean>;

export async function* desiredFeed<K extends KindName>(
  store: ChangeSource,
  kind: K,
  region: string,
  versionLastSeen: bigint,
  bytesMax: number,
  signal: AbortSignal,
  receive: Receive = async () => true,
  startOver?: () => void,
): AsyncGenerator<StateMessage<K>, never> {
  let cursor = versionLastSeen;
  let servedId: string | undefined;
  for (let isOpen = false; ; ) {
    signal.throwIfAborted();
    const { rows, counter, incarnation } = await store.changesSince(region, kind, cursor, batchRowsMax);
    if (isOpen && incarnation?.id !== servedId) throw turnedAway("a new incarnation was started");
    if (!isOpen) {
      const isKnown = await receive({ region, counter, incarnation });
      isOpen = true;
      servedId = incarnation?.id;
      if (!isKnown && cursor > 0n) {
        cursor = 0n;
        continue;
      }
    }
    if (cursor > counter && startOver !== undefined) {
      startOver();
      cursor = 0n;
      continue;
    }
    if (cursor > counter) {
      const message = `version ${cursor} is above the newest version of region ${region}, ${counter}: start again from 0`;
      throw new ConnectError(message, Code.OutOfRange);
    }
    for (const row of rows) {
      yield limitedState(kind, row, bytesMax);
      cursor = row.version;
    }
    if (rows.length === 0) await store.waitForChange(region, counter, signal);
  }
}
