// Node's own Headers are the model: the same calls have the same results.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Headers as LeanHeaders } from "./headers.ts";

type Either = LeanHeaders | Headers;
type Init = ConstructorParameters<typeof LeanHeaders>[0];
type NodeInit = ConstructorParameters<typeof Headers>[0];

const names = ["a", "A", "b-1", "Set-Cookie", "set-cookie", "", "a b", "ä", "x:", "a\n"];
const values = ["", "1", " two\t", "a,b", "é", "\r\n3", "4\r\nb: 5", "\0", "漢", 6, null, undefined];
const anyName = fc.constantFrom(...names);
const anyValue = fc.constantFrom<unknown>(...values);
const good = fc.record({ name: fc.constantFrom(...names.slice(0, 5)), value: fc.string() });
const call = fc.oneof(
  fc.record({ method: fc.constantFrom("append" as const, "set" as const), name: anyName, value: anyValue }),
  good.map(({ name, value }) => ({ method: "append" as const, name, value })),
  fc.record({ method: fc.constantFrom("delete" as const, "get" as const, "has" as const), name: anyName }),
);

/** The result, or the name of the error. */
function outcome<T>(task: () => T): T | string {
  try {
    return task();
  } catch (error) {
    return error instanceof Error ? error.name : "no error";
  }
}

function contents(headers: Either) {
  const each: unknown[] = [];
  headers.forEach(function (this: unknown, value, name, all) {
    each.push([value, name, all === headers, this]);
  }, "self");
  const lists = [headers, headers.entries(), headers.keys(), headers.values(), headers.getSetCookie(), each];
  return [...lists.map((list) => [...list]), Object.prototype.toString.call(headers)];
}

test("any calls have the results that Node's own Headers have", () => {
  const play = (headers: Either, calls: readonly { method: "append" | "delete"; name: string }[]) => [
    ...calls.map(({ method, ...rest }) =>
      outcome(() => (headers[method] as (...args: unknown[]) => unknown)(...Object.values(rest))),
    ),
    ...contents(headers),
  ];
  fc.assert(
    fc.property(fc.array(call, { maxLength: 12 }), (calls) => {
      const played = calls as Parameters<typeof play>[1];
      assert.deepEqual(play(new LeanHeaders(), played), play(new Headers(), played));
    }),
  );
});

test("they are made of the same things", () => {
  const inits: readonly unknown[] = [
    undefined,
    null,
    "a: b",
    {},
    { b: "1", A: " 2 " },
    { a: "1\n2" },
    [
      ["b", "1"],
      ["a", "2"],
      ["B", "3"],
    ],
    [["a"]],
    [["a", "1", "2"]],
    [["a", undefined]],
    new Map([["c", "3"]]),
    new Headers([
      ["set-cookie", "1"],
      ["set-cookie", "2"],
      ["z", "3"],
    ]),
  ];
  for (const init of inits) {
    const made = (create: () => Either) => outcome(() => contents(create()));
    assert.deepEqual(
      made(() => new LeanHeaders(init as Init)),
      made(() => new Headers(init as NodeInit)),
    );
  }
});

test("they are made of one another, and an invalid value is not shown: it may be a secret", () => {
  const some = new LeanHeaders({ a: "1" });
  assert.deepEqual([...new LeanHeaders(some)], [["a", "1"]]);
  assert.deepEqual([...new Headers(some as unknown as NodeInit)], [["a", "1"]]);
  assert.throws(
    () => some.set("authorization", "Bearer\ns3cret"),
    (error: Error) => error.message === "invalid value for the header authorization",
  );
});
