import assert from "node:assert/strict";
import { Writable } from "node:stream";
import { test } from "node:test";
import { UnreadResponses } from "./unread-responses.ts";

/** An answer that nobody takes. */
function answerOf(bytes: number): Writable {
  const answer = new Writable({ write: () => undefined });
  answer.end(Buffer.alloc(bytes));
  return answer;
}

function hold(limit: number, sizes: readonly number[]): readonly number[] {
  const unread = new UnreadResponses({ answerBytesMax: limit });
  const cut: number[] = [];
  for (const [index, bytes] of sizes.entries()) unread.add(answerOf(bytes), () => void cut.push(index));
  return cut;
}

test("above the limit the answers that wait longest go", () => {
  assert.deepEqual(hold(100, [40, 40, 40, 30]), [0, 1]);
});

test("an answer above the limit takes no other with it", () => {
  assert.deepEqual(hold(100, [40, 40, 101, 20]), [2]);
});
