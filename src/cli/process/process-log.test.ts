import assert from "node:assert/strict";
import { test } from "node:test";
import { readableLine } from "./process-log.ts";

const plain = (text: string) => text;
const line = (fields: object) =>
  `${JSON.stringify({ level: "info", time: "2026-01-02T03:04:05.678Z", ...fields })}\n`;

test("a line has the time, the level, the message and the fields, without the instance", () => {
  const fields = { instance: { id: "ins_1" }, key: "acme/web-1", version: "7", msg: "reconciled" };
  assert.equal(readableLine(line(fields), plain), "03:04:05.678 info  reconciled key=acme/web-1 version=7\n");
});

test("errors are spread out, and text with spaces is quoted", () => {
  const error = { type: "KubeApiError", message: "connection refused", code: "unreachable", stack: "at a" };
  assert.equal(
    readableLine(line({ level: "error", error, msg: "failed" }), plain),
    `03:04:05.678 error failed error.type=KubeApiError error.message="connection refused" error.code=unreachable\n`,
  );
});

test("text from outside cannot control the terminal", () => {
  const shown = readableLine(line({ reason: "a\u001b[2J\r\nb", msg: "x" }), plain);
  assert.equal(shown, `03:04:05.678 info  x reason="a [2J b"\n`);
});
