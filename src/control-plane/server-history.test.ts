import assert from "node:assert/strict";
import { test } from "node:test";
import { ControlPlaneError } from "./error.ts";
import { compareIncarnations, formatIncarnation, type Incarnation, parseIncarnation } from "./incarnation.ts";
import { type HistoryChange, ServerHistory } from "./server-history.ts";

const first: Incarnation = { ordinal: 10n, id: "a-1", parent: "" };
const second: Incarnation = { ordinal: 12n, id: "b-1", parent: "a-1" };

function follow(history: ServerHistory) {
  const changes: HistoryChange[] = [];
  const ignored: Incarnation[] = [];
  history.follow({
    seen: () => 7n,
    onNewIncarnation: (change) => changes.push(change),
    onIgnored: (one) => ignored.push(one),
  });
  return { changes, ignored };
}

test("a header is read back as it was written; anything else names no incarnation", () => {
  for (const incarnation of [first, second])
    assert.deepEqual(parseIncarnation(formatIncarnation(incarnation)), incarnation);
  for (const text of [null, undefined, "", "1", "1/a", "x/a/b", "1/a b/", "-1/a/", `1/${"a".repeat(65)}/`])
    assert.equal(parseIncarnation(text), undefined, String(text));
});

test("incarnations are in a total order, also with equal ordinals", () => {
  assert.ok(compareIncarnations(second, first) > 0 && compareIncarnations(first, second) < 0);
  assert.equal(compareIncarnations(first, { ...first, parent: "other" }), 0);
  const twin = { ...first, id: "a-2" };
  assert.ok(compareIncarnations(twin, first) > 0 && compareIncarnations(first, twin) < 0);
});

test("the first incarnation voids nothing, and requests name it with the highest version seen", () => {
  const history = new ServerHistory();
  const { changes } = follow(history);
  assert.deepEqual(history.requestHeaders(), {});
  history.take(formatIncarnation(first), "stream");
  assert.deepEqual([changes, history.current, history.isNamed], [[], first, true]);
  assert.deepEqual(history.requestHeaders(), {
    "x-krane-incarnation": "10/a-1/",
    "x-krane-version-seen": "7",
  });
});

test("the first incarnation voids what an older control plane sent", () => {
  const history = new ServerHistory();
  const { changes } = follow(history);
  history.take(null, "stream");
  history.take(formatIncarnation(first), "stream");
  assert.deepEqual(changes, [{ from: undefined, to: first, startsAtZero: false }]);
});

test("a newer incarnation is followed, and one that it replaced is ignored from then on", () => {
  const history = new ServerHistory();
  const { changes, ignored } = follow(history);
  history.take(formatIncarnation(first), "response");
  history.take(formatIncarnation(second), "stream");
  history.take(formatIncarnation(second), "response");
  assert.deepEqual(changes, [{ from: first, to: second, startsAtZero: true }]);
  assert.throws(
    () => history.take(formatIncarnation(first), "response"),
    (error) => error instanceof ControlPlaneError && error.code === "unavailable",
  );
  assert.deepEqual([ignored, history.ignoredCount, history.current], [[first], 1, second]);
});

test("a response without a name changes nothing", () => {
  const history = new ServerHistory();
  const { changes } = follow(history);
  history.take(formatIncarnation(first), "response");
  history.take(undefined, "response");
  assert.deepEqual([history.isNamed, history.current], [false, first]);
  history.take(formatIncarnation(first), "response");
  assert.deepEqual([history.isNamed, changes], [true, []]);
});
