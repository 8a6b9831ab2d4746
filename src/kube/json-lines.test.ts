import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KubeApiError } from "./errors.ts";
import { LineSplitter, parseJson } from "./json-lines.ts";

test("the lines are the same however the bytes are chunked", () => {
  const lines = fc.array(fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text)));
  fc.assert(
    fc.property(lines, fc.array(fc.nat(40)), (texts, cuts) => {
      const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
      const splitter = new LineSplitter(10_000);
      const seen: string[] = [];
      let start = 0;
      for (const cut of [...cuts, bytes.length]) {
        for (const line of splitter.push(bytes.subarray(start, start + cut))) seen.push(line.toString());
        start = Math.min(start + cut, bytes.length);
      }
      assert.deepEqual(seen, texts);
      assert.equal(splitter.pendingBytes, 0);
    }),
  );
});

test("an incomplete line is pending, and one that is too long fails before it ends", () => {
  const splitter = new LineSplitter(8);
  assert.deepEqual([...splitter.push(Buffer.from("12345\n678"))].map(String), ["12345"]);
  assert.equal(splitter.pendingBytes, 3);
  assert.throws(() => [...splitter.push(Buffer.from("123456"))], KubeApiError);
});

test("empty lines are skipped", () => {
  assert.deepEqual([...new LineSplitter(8).push(Buffer.from("\n\na\n\n"))].map(String), ["a"]);
});

test("invalid JSON is not quoted in the error", () => {
  assert.throws(
    () => parseJson("get secrets a", "hunter2"),
    (error: Error) => !`${error.stack} ${String(error.cause)}`.includes("hunter2"),
  );
});
