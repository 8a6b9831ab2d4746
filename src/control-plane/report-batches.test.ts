import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { ControlPlaneError } from "./error.ts";
import { ReportBatches, reportsPerCall } from "./report-batches.ts";

const never = new AbortController().signal;

/** A control plane that takes reports, which are names. */
class Plane {
  readonly clock = new FakeClock();
  /** What arrived, call by call. */
  readonly calls: string[][] = [];
  generation = 1;
  hasMany = true;
  fail: (names: readonly string[]) => unknown = () => undefined;
  readonly batches = new ReportBatches<string>({
    clock: this.clock,
    generation: () => this.generation,
    sendOne: ({ report }) => this.take([report]),
    sendMany: async (reports) => {
      if (!this.hasMany) return undefined;
      await this.take(reports.map(({ report }) => report));
      return reports.flatMap(({ report }, position) => (report.startsWith("unknown") ? [position] : []));
    },
  });
  /** A report that is answered only after `release`. */
  hangs = "";
  release = (): void => undefined;
  private readonly released = new Promise<void>((resolve) => {
    this.release = resolve;
  });
  private number = 0n;

  /** "stored", or the code of the error. */
  async send(report: string, { signal = never, term = 1n } = {}): Promise<string> {
    this.number += 1n;
    const order = { term, instance: "one", number: this.number };
    return this.batches.send({ report, order }, signal).then(
      () => "stored",
      (error) => (error instanceof ControlPlaneError ? error.code : String(error)),
    );
  }

  sendAll(...names: readonly string[]): Promise<string[]> {
    return Promise.all(names.map((name) => this.send(name)));
  }

  private async take(names: readonly string[]): Promise<void> {
    this.calls.push([...names]);
    if (names.includes(this.hangs)) await this.released;
    const error = this.fail(names);
    if (error !== undefined) throw error;
  }
}

function answered(code: "internal" | "invalid_argument" | "unavailable"): ControlPlaneError {
  return new ControlPlaneError(code, "no", { reach: "answered" });
}

test("a report that comes alone is sent at once, and those that follow it are gathered", async () => {
  const plane = new Plane();
  assert.equal(await plane.send("a"), "stored");
  const following = plane.sendAll("b", "c", "d");
  await plane.clock.advance(24);
  assert.deepEqual(plane.calls, [["a"]]);
  await plane.clock.advance(1);
  assert.deepEqual(await following, ["stored", "stored", "stored"]);
  assert.deepEqual(plane.calls, [["a"], ["b", "c", "d"]]);
  await plane.clock.advance(75);
  assert.equal(await plane.send("e"), "stored");
});

test("after a call with several, the next ones are gathered for longer, and after a pause one is sent at once", async () => {
  const plane = new Plane();
  await plane.sendAll("a", "b", "c", "d", "e");
  const following = plane.sendAll("f", "g");
  await plane.clock.advance(99);
  assert.equal(plane.calls.length, 1);
  await plane.clock.advance(1);
  assert.deepEqual(await following, ["stored", "stored"]);
  await plane.clock.advance(50);
  // The last call had two.
  assert.equal(await plane.send("h"), "stored");
  assert.deepEqual(plane.calls.slice(1), [["f", "g"], ["h"]]);
});

test("a full call does not wait", async () => {
  const plane = new Plane();
  await plane.send("first");
  const names = Array.from({ length: reportsPerCall }, (_, index) => `${index}`);
  await plane.sendAll(...names);
  assert.deepEqual(plane.calls, [["first"], names]);
});

test("of several reports, the one whose object is unknown is refused alone", async () => {
  const plane = new Plane();
  assert.deepEqual(await plane.sendAll("a", "unknown b", "c"), ["stored", "not_found", "stored"]);
  assert.equal(plane.calls.length, 1);
});

test("a refusal that one report may have caused is found by sending each by itself", async () => {
  for (const code of ["internal", "invalid_argument"] as const) {
    const plane = new Plane();
    plane.fail = (names) => (names.includes("bad") ? answered(code) : undefined);
    assert.deepEqual(await plane.sendAll("a", "bad", "c"), ["stored", code, "stored"]);
    assert.deepEqual(plane.calls, [["a", "bad", "c"], ["a"], ["bad"], ["c"]]);
  }
});

test("a report that hangs holds up the others of its call for two seconds", async () => {
  const plane = new Plane();
  plane.hangs = "slow";
  const [first, slow, last] = ["a", "slow", "c"].map((name) => plane.send(name));
  await plane.clock.advance(1_999);
  assert.deepEqual(plane.calls, [["a", "slow", "c"]]);
  await plane.clock.advance(1);
  assert.deepEqual(await Promise.all([first, last]), ["stored", "stored"]);
  assert.deepEqual(plane.calls.slice(1), [["a"], ["slow"], ["c"]]);
  plane.release();
  assert.equal(await slow, "stored");
});

test("when the control plane is unavailable, a call fails with all its reports and is not repeated", async () => {
  const plane = new Plane();
  plane.fail = () => answered("unavailable");
  assert.deepEqual(await plane.sendAll("a", "b"), ["unavailable", "unavailable"]);
  assert.deepEqual(plane.calls, [["a", "b"]]);
});

test("a server without such calls gets each report by itself, and a new connection is asked again", async () => {
  const plane = new Plane();
  plane.hasMany = false;
  assert.deepEqual(await plane.sendAll("a", "b"), ["stored", "stored"]);
  // Without a wait.
  assert.deepEqual(await plane.sendAll("c", "d"), ["stored", "stored"]);
  assert.deepEqual(plane.calls, [["a"], ["b"], ["c"], ["d"]]);
  plane.hasMany = true;
  plane.generation = 2;
  await plane.clock.advance(25);
  await plane.sendAll("e", "f");
  assert.deepEqual(plane.calls.at(-1), ["e", "f"]);
});

test("reports of different terms, or with different lifetimes, do not share a call", async () => {
  const plane = new Plane();
  const other = new AbortController().signal;
  const sent = [
    plane.send("a"),
    plane.send("b"),
    plane.send("c", { term: 2n }),
    plane.send("d", { term: 2n, signal: other }),
  ];
  await plane.clock.advance(100);
  await Promise.all(sent);
  assert.deepEqual(plane.calls, [["a", "b"], ["c"], ["d"]]);
});

test("a report that waits for others ends with its signal, and is not sent", async () => {
  const plane = new Plane();
  await plane.send("first");
  const ending = new AbortController();
  const waiting = plane.send("late", { signal: ending.signal });
  ending.abort("the term has ended");
  assert.equal(await waiting, "the term has ended");
  await plane.clock.advance(100);
  assert.deepEqual(plane.calls, [["first"]]);
  assert.equal(await plane.send("too late", { signal: ending.signal }), "the term has ended");
});
