import assert from "node:assert/strict";
import { test } from "node:test";
import {
  matchesLabelSelector,
  parseFieldSelector,
  parseLabelSelector,
  printLabelSelector,
} from "./selectors.ts";
import { StatusError } from "./status-error.ts";

const labels = { app: "web", tier: "front", "example.com/zone": "a", empty: "" };

function selects(selector: string): boolean {
  return parseLabelSelector(selector)(labels);
}

test("label selectors select by equality, sets and presence", () => {
  for (const selector of [
    "",
    "app=web",
    "app==web",
    "app!=db",
    "missing!=x",
    "app in (web, db)",
    "app notin (db)",
    "missing notin (db)",
    "app",
    "!missing",
    "! missing",
    "example.com/zone=a",
    "empty=",
    "app in (web),tier in (front,back),!missing,example.com/zone",
  ]) {
    assert.equal(selects(selector), true, selector);
  }
  for (const selector of [
    "app=db",
    "app!=web",
    "app in (db)",
    "app notin (web,db)",
    "missing",
    "!app",
    "app=web,tier=back",
  ]) {
    assert.equal(selects(selector), false, selector);
  }
});

test("an inherited property is not a label", () => {
  assert.equal(selects("toString"), false);
  assert.equal(selects("!constructor"), true);
});

test("an invalid selector is rejected with the real server's message", () => {
  assert.throws(
    () => parseLabelSelector("a===b"),
    (error: unknown) => error instanceof StatusError && /found '=', expected: identifier/.test(error.message),
  );
  assert.throws(() => parseLabelSelector("a b"), StatusError);
  assert.throws(
    () => parseFieldSelector("foo"),
    (error: unknown) =>
      error instanceof StatusError && error.message === "invalid selector: 'foo'; can't understand 'foo'",
  );
});

test("field selectors split into requirements, with escapes", () => {
  assert.deepEqual(parseFieldSelector("metadata.name=a,status.phase!=Running,x==b\\,c"), [
    { field: "metadata.name", value: "a", equal: true },
    { field: "status.phase", value: "Running", equal: false },
    { field: "x", value: "b,c", equal: true },
  ]);
});

test("the selectors of objects match like those of queries", () => {
  const selector = {
    matchLabels: { app: "web" },
    matchExpressions: [
      { key: "tier", operator: "In", values: ["front"] },
      { key: "missing", operator: "DoesNotExist" },
      { key: "empty", operator: "Exists" },
      { key: "app", operator: "NotIn", values: ["db"] },
    ],
  };
  assert.equal(matchesLabelSelector(selector, labels), true);
  assert.equal(matchesLabelSelector(selector, { ...labels, missing: "" }), false);
  assert.equal(selects(printLabelSelector(selector)), true);
  assert.equal(printLabelSelector({ matchLabels: { b: "2", a: "1" } }), "a=1,b=2");
});
