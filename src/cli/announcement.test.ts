import assert from "node:assert/strict";
import { test } from "node:test";
import { invokedAs } from "./announcement.ts";

test("the program is named so that it can be called again from the same folder", () => {
  for (const [path, folder, expected] of [
    ["/src/krane/bin/krane", "/src/krane", "bin/krane"],
    ["/src/krane/bin/krane", "/src/krane/bin", "./krane"],
    ["/src/krane/bin/krane", "/src/krane/docs", "krane"],
    ["/usr/local/bin/krane", "/src/krane", "krane"],
    ["/src/krane", "/src/krane", "krane"],
    ["/src/..krane/krane", "/src", "..krane/krane"],
    [undefined, "/src/krane", "krane"],
  ] as const)
    assert.equal(invokedAs(path, folder), expected);
});
