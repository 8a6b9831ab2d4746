import assert from "node:assert/strict";
import { test } from "node:test";
import { createReportOrders, formatReportOrder, parseReportOrder } from "../control-plane/report-order.ts";
import { formatRank, isOlderReport, lateMaxMs, parseRank, readReportRank } from "./report-rank.ts";

const rank = { incarnation: 5n, term: 3n, instance: "a", number: 10n };
const at = (change: Partial<typeof rank>, atMs = 0) => ({ rank: { ...rank, ...change }, atMs });

test("a report of the same process with a lower number, or the same, is older", () => {
  assert.equal(isOlderReport(at({ number: 9n }), at({})), true);
  assert.equal(isOlderReport(at({ number: 10n }), at({})), true);
  assert.equal(isOlderReport(at({ number: 11n }), at({})), false);
});

test("a report of an earlier term or incarnation is older, but not for ever", () => {
  for (const earlier of [
    { term: 2n, instance: "b", number: 99n },
    { incarnation: 4n, instance: "b", number: 99n },
  ]) {
    assert.equal(isOlderReport(at(earlier, lateMaxMs - 1), at({})), true);
    assert.equal(isOlderReport(at(earlier, lateMaxMs), at({})), false);
    assert.equal(isOlderReport(at({}), at(earlier)), false);
  }
});

test("reports that cannot be compared are taken as they come", () => {
  assert.equal(isOlderReport(at({ instance: "b", number: 1n }), at({})), false);
  assert.equal(isOlderReport({ rank: undefined, atMs: 0 }, at({})), false);
  assert.equal(isOlderReport(at({ number: 1n }), { rank: undefined, atMs: 0 }), false);
  assert.equal(isOlderReport(at({ incarnation: 0n, instance: "b" }), at({})), false);
});

test("a rank is read back as it was written, and from the headers of a request", () => {
  assert.deepEqual(parseRank(formatRank(rank)), rank);
  for (const text of [null, "", "5", "x 3/a/10", "5 3/a"]) assert.equal(parseRank(text), undefined);
  const headers = { "x-krane-report-order": "3/a/10", "x-krane-incarnation": "5/i-1/" };
  assert.deepEqual(readReportRank(new Headers(headers)), rank);
  assert.equal(readReportRank(new Headers()), undefined);
});

test("the reports of a process are numbered, under a name that differs after a restart", () => {
  let term = 7n;
  const options = { instance: "krane 0", term: () => term };
  const next = createReportOrders(options, 1_000);
  const first = next();
  term = 8n;
  const second = next();
  assert.ok(first && second);
  assert.deepEqual([first.term, first.number, second.term, second.number], [7n, 1n, 8n, 2n]);
  assert.deepEqual(parseReportOrder(formatReportOrder(first)), first);
  assert.notEqual(createReportOrders(options, 2_000)()?.instance, first.instance);
  assert.equal(createReportOrders(undefined, 0)(), undefined);
});
