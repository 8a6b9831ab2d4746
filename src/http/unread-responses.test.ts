import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { UnreadResponses } from "./unread-responses.ts";

/** A response that the client never reads. */
function responseOf(bytes: number): Writable {
  const response = new Writable({ write: () => undefined });
  response.end(Buffer.alloc(bytes));
  return response;
}

function hold(limit: number, sizes: readonly number[]): readonly number[] {
  const unread = new UnreadResponses({ responseBytesMax: limit });
  const cut: number[] = [];
  for (const [index, bytes] of sizes.entries()) unread.add(responseOf(bytes), () => void cut.push(index));
  return cut;
}

test("above the limit, the oldest unread responses are dropped", () => {
  assert.deepEqual(hold(100, [40, 40, 40, 30]), [0, 1]);
});

test("a response above the limit is dropped alone", () => {
  assert.deepEqual(hold(100, [40, 40, 101, 20]), [2]);
});
