import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { StreamLogsResponseSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { linesMax, linesOfMessage, noLines, noteLine, visibleText, withLines } from "./log-lines.ts";

const numbered = (from: number, count: number, text = "x") =>
  Array.from({ length: count }, (_, index) => ({ ...noteLine(text), number: from + index }));

test("the newest lines are kept, and it is known how many are not", () => {
  const full = withLines(withLines(noLines, numbered(1, linesMax)), numbered(linesMax + 1, 5));
  assert.deepEqual([full.lines.length, full.lines[0]?.number, full.gone], [linesMax, 6, 5]);
  const flooded = withLines(full, numbered(linesMax + 6, 3 * linesMax));
  assert.deepEqual([flooded.lines.length, flooded.gone], [linesMax, 3 * linesMax + 5]);
});

test("lines of the greatest length make room as well", () => {
  const { lines, gone } = withLines(noLines, numbered(1, 200, "x".repeat(16_384)));
  assert.deepEqual([lines.length + gone, lines.at(-1)?.number], [200, 200]);
  assert.ok(lines.length * 16_384 <= 2_000_000 && lines.length > 100);
});

test("a message is its lines, with what is missing before and in them", () => {
  const entry = { podName: "web-a", timeNs: 1_700_000_000_123_456_789n, text: "begin", cutBytes: 9 };
  const message = create(StreamLogsResponseSchema, { dropped: 1_200n, entry });
  assert.deepEqual(linesOfMessage(message), [
    noteLine("1,200 lines dropped here: they came faster than they were read"),
    { podName: "web-a", timeMs: 1_700_000_000_123, text: "begin … (9 bytes cut)", isNote: false },
  ]);
  const note = create(StreamLogsResponseSchema, { entry: { text: "the pod has ended", isNote: true } });
  assert.deepEqual(linesOfMessage(note), [noteLine("the pod has ended")]);
});

test("characters that would move, hide or turn text are shown as such, and colours are left out", () => {
  assert.equal(visibleText("\u001b[1;31mred\u001b[0m\tand plain"), "red\tand plain");
  assert.equal(
    visibleText("\u001b]0;title\u0007a\rb\u202ec\u2028d\u0000"),
    "\ufffd]0;title\ufffda\ufffdb\ufffdc\ufffdd\ufffd",
  );
  assert.equal(visibleText("<script>größer 日本 🚢</script>"), "<script>größer 日本 🚢</script>");
});
