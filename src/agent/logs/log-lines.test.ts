import assert from "node:assert/strict";
import { test } from "node:test";
import { LogLines, lineBytesMax } from "./log-lines.ts";

function read(chunks: readonly string[]) {
  const lines = new LogLines();
  const found = chunks.flatMap((chunk) => [...lines.push(Buffer.from(chunk))]);
  const rest = lines.rest();
  return rest === undefined ? found : [...found, rest];
}

test("lines are split wherever the chunks end, and lose their times", () => {
  const text = "2026-01-01T00:00:00.5Z one\n2026-01-01T01:00:01.000000002+01:00 two ä\r\n\nrest";
  const base = 1_767_225_600_000_000_000n;
  const expected = [
    { timeNs: base + 500_000_000n, text: "one", cutBytes: 0 },
    { timeNs: base + 1_000_000_002n, text: "two ä", cutBytes: 0 },
    { timeNs: 0n, text: "", cutBytes: 0 },
    { timeNs: 0n, text: "rest", cutBytes: 0 },
  ];
  assert.deepEqual(read([text]), expected);
  const bytes = Buffer.from(text);
  const lines = new LogLines();
  const single = [...bytes].flatMap((byte) => [...lines.push(Buffer.from([byte]))]);
  assert.deepEqual([...single, lines.rest()], expected);
});

test("a line of any length takes a limited amount of memory, and what is cut is counted", () => {
  const time = "2026-01-01T00:00:00Z ";
  for (const length of [lineBytesMax, lineBytesMax + 1, 1_000_000]) {
    const [long, next] = read([time, "x".repeat(length), `\n${time}next\n`]);
    assert.equal(long?.text.length, lineBytesMax);
    assert.equal(long?.cutBytes, length - lineBytesMax);
    assert.equal(next?.text, "next");
  }
});
