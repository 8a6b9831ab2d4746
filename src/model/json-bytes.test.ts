import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { JsonBytes } from "./json-bytes.ts";

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

test("a string is what JSON.stringify gives, for every UTF-16 code unit, lone surrogates included", () => {
  const bytes = new JsonBytes();
  const digest = (text: string) => {
    bytes.string(text);
    return bytes.digest();
  };
  for (let unit = 0; unit <= 0xffff; unit++) {
    const text = `a${String.fromCharCode(unit)}b`;
    assert.equal(digest(text), digestOf(JSON.stringify(text)), unit.toString(16));
  }
  for (const text of ["", "😀", '"', "\\", "\u2028"])
    assert.equal(digest(text), digestOf(JSON.stringify(text)));
});

test("a text larger than the buffer is kept whole", () => {
  const bytes = new JsonBytes();
  const long = { ascii: "x".repeat(100_000), others: "\u0000é".repeat(300_000) };
  for (let round = 0; round < 2; round++) {
    bytes.raw("[1,");
    bytes.string(long.ascii);
    bytes.raw(",");
    bytes.string(long.others);
    bytes.raw("]");
    assert.equal(bytes.digest(), digestOf(JSON.stringify([1, long.ascii, long.others])));
  }
});

test("what is cut does not count", () => {
  const bytes = new JsonBytes();
  bytes.raw("{}");
  const { length } = bytes;
  bytes.string("é");
  bytes.cut(length);
  assert.equal(bytes.digest(), digestOf("{}"));
});
