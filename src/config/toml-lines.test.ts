import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parse } from "smol-toml";
import { keyId, locateKeys } from "./toml-lines.ts";

function linesOf(text: string): Record<string, number> {
  parse(text);
  return Object.fromEntries([...locateKeys(text)].map(([id, line]) => [JSON.parse(id).join("."), line]));
}

test("keys, dotted keys and sections have their line", () => {
  assert.deepEqual(linesOf("a = 1\nb.c = 2\n\n[d.e]\nf = 3 # g = 4\n[[h]]\ni = 1\n"), {
    a: 1,
    b: 2,
    "b.c": 2,
    d: 4,
    "d.e": 4,
    "d.e.f": 5,
    h: 6,
    "h.i": 7,
  });
});

test("quoted keys are decoded", () => {
  assert.deepEqual(linesOf(`"a b" = 1\n'c=d' . "\\u0065" = 2\n["f]"]\n"g#" = 3\n"" = 4`), {
    "a b": 1,
    "c=d": 2,
    "c=d.e": 2,
    "f]": 3,
    "f].g#": 4,
    "f].": 5,
  });
});

test("inline tables may span lines, and keys inside lists are skipped", () => {
  const text =
    'a = { b = 1, # c = 2\n  d = [ { x = 1 }, { y = "}" }, [ "]", 2 ],\n ], e.f = {},\n}\ng = []\nh = 1';
  assert.deepEqual(linesOf(text), { a: 1, "a.b": 1, "a.d": 2, "a.e": 3, "a.e.f": 3, g: 5, h: 6 });
});

test("text inside a string is not a key", () => {
  const text = [
    'a = """',
    "x = 1",
    '\\""" y = 2 """"',
    "b = '''",
    "[z]",
    "'''''",
    'c = "# [q] \\" = {"',
    "d = '\\'",
    'e = ""',
    'f = """"""',
    "g = 1979-05-27 07:32:00",
    "h = [",
    "  1, # ]",
    "]",
    "i = 1",
  ].join("\n");
  assert.deepEqual(linesOf(text), { a: 1, b: 4, c: 7, d: 8, e: 9, f: 10, g: 11, h: 12, i: 15 });
});

test("Windows line endings and a byte order mark do not shift lines", () => {
  assert.deepEqual(linesOf("\ufeffa = 1\r\n\r\n[b]\r\nc = 2\r\n"), { a: 1, b: 3, "b.c": 4 });
});

test("the first line counts when a section is opened twice through its subsections", () => {
  assert.deepEqual(linesOf("[a.b]\nc = 1\n[a]\nd = 2\n"), { a: 1, "a.b": 1, "a.b.c": 2, "a.d": 4 });
});

const key = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_-]{1,6}$/),
  fc.string({ maxLength: 6, unit: "grapheme" }).map((text) => JSON.stringify(text).replaceAll("\u007f", "")),
);
const scalar = fc.oneof(
  fc.integer().map(String),
  fc.string({ maxLength: 12 }).map((text) => JSON.stringify(text).replaceAll("\u007f", "")),
  fc.stringMatching(/^[a-z=\n[\]{}#", ]{0,20}$/).map((text) => `'''${text}'''`),
  fc.stringMatching(/^[a-z=\n[\]{}#', ]{0,20}$/).map((text) => `"""${text}"""`),
  fc.constantFrom("true", "1e3", "1979-05-27 07:32:00", "07:32:00", "-inf", "[1, 2]", '[ "]", # ]\n 3 ]'),
);
const { value } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    fc.array(tie("value"), { maxLength: 3 }).map((items) => `[${items.join(",\n")}]`),
    fc
      .array(fc.tuple(key, tie("value")), { maxLength: 3 })
      .map((pairs) => `{${pairs.map((pair) => pair.join(" = ")).join(", ")}}`),
  ),
}));

test("in any document every parsed key has the line of its text", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(key, value), { maxLength: 6 }), (pairs) => {
      let text = "";
      const expected = new Map<string, number>();
      for (const [name, content] of pairs) {
        const id = keyId([String(Object.keys(parse(`${name} = 1`))[0])]);
        if (expected.has(id)) continue;
        expected.set(id, text.split("\n").length);
        text += `${name} = ${content}\n# ${name} = "\n`;
      }
      if (!isToml(text)) return;
      const lines = locateKeys(text);
      for (const [id, line] of expected) assert.equal(lines.get(id), line);
      for (const path of pathsOf(parse(text, { integersAsBigInt: "asNeeded" }))) {
        assert.ok(lines.has(keyId(path)), path.join("."));
      }
    }),
    { numRuns: 500 },
  );
});

function isToml(text: string): boolean {
  try {
    parse(text, { integersAsBigInt: "asNeeded" });
    return true;
  } catch {
    return false;
  }
}

function pathsOf(value: unknown, prefix: string[] = []): string[][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, inner]) => [
    [...prefix, name],
    ...pathsOf(inner, [...prefix, name]),
  ]);
}
