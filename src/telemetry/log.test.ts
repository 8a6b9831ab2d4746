import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createLog, type LogLevel } from "./log.ts";
import { type LogFields, logFieldCatalogue } from "./log-fields.ts";

interface Line extends Record<string, unknown> {
  readonly error?: {
    type: string;
    message: string;
    code?: unknown;
    stack?: string;
    cause?: Line["error"];
    errors?: Line["error"][];
  };
}

function createFixture(options: { level?: LogLevel; rate?: number; next?: number } = {}) {
  const lines: Line[] = [];
  const clock = new FakeClock();
  let draws = 0;
  const log = createLog(
    {
      level: options.level ?? "debug",
      instance: { id: "ins_1", region: "us-east-1.aws", version: "1.2.3" },
      sampling: { rate: options.rate ?? 1, slowThresholdMs: 1000 },
    },
    {
      write(line) {
        assert.ok(line.endsWith("}\n"));
        lines.push(JSON.parse(line));
      },
      random: {
        next() {
          draws++;
          return options.next ?? 0.5;
        },
      },
      clock,
    },
  );
  return { log, lines, clock, draws: () => draws };
}

test("a line has the level as a word, the clock's time, the instance, the message and the fields", async () => {
  const { log, lines, clock } = createFixture();
  await clock.advance(1234);
  log.info("stream opened", { controller: "deployments", attempt: 2, version: 2n ** 60n, enabled: true });
  assert.deepEqual(lines, [
    {
      level: "info",
      time: "2026-01-01T00:00:01.234Z",
      instance: { id: "ins_1", region: "us-east-1.aws", version: "1.2.3" },
      controller: "deployments",
      attempt: 2,
      version: "1152921504606846976",
      enabled: true,
      msg: "stream opened",
    },
  ]);
});

test("lines below the level are not written", () => {
  const { log, lines } = createFixture({ level: "warn" });
  log.debug("a");
  log.info("b");
  log.event("c", { durationMs: 5000 });
  log.warn("d");
  log.error("e");
  log.event("f", { durationMs: 0, error: new Error("x") });
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    [
      ["warn", "d"],
      ["error", "e"],
      ["error", "f"],
    ],
  );
});

test("a child's fields are on each of its lines, a line's own field overrides them, and no name is written twice", () => {
  const written: string[] = [];
  const clock = new FakeClock();
  const raw = createLog(
    {
      level: "info",
      instance: { id: "i", region: "r", version: "v" },
      sampling: { rate: 1, slowThresholdMs: 1 },
    },
    { write: (line) => written.push(line), random: { next: () => 0 }, clock },
  );
  raw.child({ key: "a", kind: "Pod" }).child({ key: "b" }).info("x", { kind: "Service" });
  raw.info("y");
  assert.equal(written[0]?.match(/"key":/g)?.length, 1);
  assert.equal(written[0]?.match(/"kind":/g)?.length, 1);
  const [first, second] = written.map((line) => JSON.parse(line));
  assert.deepEqual([first.key, first.kind], ["b", "Service"]);
  assert.deepEqual([second.key, second.kind], [undefined, undefined]);
});

test("an event is kept if it failed, was slower than the threshold, or was sampled", () => {
  const sampledOut = createFixture({ rate: 0.5, next: 0.5 });
  sampledOut.log.event("fast", { durationMs: 1000 });
  sampledOut.log.event("slow", { durationMs: 1001 });
  sampledOut.log.event("failed", { durationMs: 1, error: new Error("x") });
  assert.deepEqual(
    sampledOut.lines.map(({ msg, level }) => [msg, level]),
    [
      ["slow", "info"],
      ["failed", "error"],
    ],
  );
  const sampledIn = createFixture({ rate: 0.5, next: 0.499 });
  sampledIn.log.event("fast", { durationMs: 1 });
  assert.equal(sampledIn.lines.length, 1);
});

test("a sample rate of 0 keeps no ordinary event, and 1 keeps every one", () => {
  const none = createFixture({ rate: 0, next: 0 });
  none.log.event("x", { durationMs: 1 });
  assert.equal(none.lines.length, 0);
  const all = createFixture({ rate: 1, next: 0.999999 });
  all.log.event("x", { durationMs: 1 });
  assert.equal(all.lines.length, 1);
});

test("a write that throws does not reach the caller, is counted, and the next line is written", () => {
  let broken = true;
  const written: string[] = [];
  const log = createLog(
    {
      level: "info",
      instance: { id: "i", region: "r", version: "v" },
      sampling: { rate: 1, slowThresholdMs: 1 },
    },
    {
      write(line) {
        if (broken) throw Object.assign(new Error("write EPIPE"), { code: "EPIPE" });
        written.push(line);
      },
      random: { next: () => 0 },
      clock: new FakeClock(),
    },
  );
  log.info("lost");
  log.child({ key: "a" }).error("lost too");
  assert.equal(log.dropped, 2);
  broken = false;
  log.info("back");
  assert.equal(written.length, 1);
  assert.equal(log.dropped, 2);
});

test("an error is described with its code, its frames, its causes and the errors it aggregates", () => {
  const { log, lines } = createFixture();
  const refused = Object.assign(new TypeError("connect refused"), { code: "ECONNREFUSED" });
  log.error("failed", {
    error: new AggregateError([refused, "just text"], "all failed", {
      cause: new RangeError("root", { cause: 7 }),
    }),
  });
  const error = lines[0]?.error;
  assert.deepEqual([error?.type, error?.message], ["AggregateError", "all failed"]);
  assert.match(error?.stack ?? "", /^at .*log\.test\.ts/);
  assert.deepEqual([error?.cause?.type, error?.cause?.cause?.message], ["RangeError", "7"]);
  assert.deepEqual(
    error?.errors?.map((inner) => [inner?.type, inner?.message, inner?.code]),
    [
      ["TypeError", "connect refused", "ECONNREFUSED"],
      ["string", "just text", undefined],
    ],
  );
});

test("for any thrown value the line is written and stays small", () => {
  const { log, lines } = createFixture();
  const cyclic: Error & { cause?: unknown } = new Error("cyclic");
  cyclic.cause = cyclic;
  let deep = new Error("leaf");
  for (let level = 0; level < 1000; level++) deep = new Error("x".repeat(5000), { cause: deep });
  const wide = (depth: number): Error =>
    depth === 0
      ? new Error("y".repeat(5000))
      : new AggregateError(Array.from({ length: 20 }, () => wide(depth - 1)));
  const hostile = {
    get message(): string {
      throw new Error("no");
    },
  };
  const thrown = [
    cyclic,
    deep,
    wide(3),
    hostile,
    null,
    Symbol("s"),
    1n,
    () => 0,
    Object.create(null),
    new Map(),
  ];
  for (const error of thrown) log.error("failed", { error });
  assert.equal(lines.length, thrown.length);
  for (const line of lines) assert.ok(JSON.stringify(line).length < 100_000);
});

test("a long value is cut, and NaN and infinity are written as text", () => {
  const { log, lines } = createFixture();
  log.info("x", { reason: "r".repeat(100_000), durationMs: Number.NaN, count: Number.POSITIVE_INFINITY });
  assert.equal(String(lines[0]?.["reason"]).length, 1025);
  assert.deepEqual([lines[0]?.["durationMs"], lines[0]?.["count"]], ["NaN", "Infinity"]);
});

// K7: the canary stands for a secret that must not appear in any line, wherever in an error or a field it was.
const canary = "CANARY-s3cr3t.value_42";
const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJDQU5BUlkifQ.c2lnbmF0dXJlLUNBTkFSWQ";

const leaks: readonly string[] = [
  `request failed: Bearer ${canary}`,
  `BEARER   ${canary} refused`,
  `Basic ${canary}`,
  `{"authorization":"${canary}"}`,
  `{"Authorization":"Bearer ${canary}","x":1}`,
  `headers: { authorization: 'Bearer ${canary}' }`,
  `headers: { Authorization: [ "${canary}" ] }`,
  `{\\"authorization\\":\\"${canary}\\"}`,
  `Authorization: Token ${canary}`,
  `authorization=${canary}&x=1`,
  `GET https://user:${canary}@registry.example.com/v2/ 401`,
  `authorization: ${canary}\nhost: x`,
  `${"x".repeat(1000)} Bearer ${canary}`,
];

test("a token in the text of an error, its causes or a field is not written", () => {
  for (const leak of leaks) {
    const { log, lines } = createFixture();
    const inner = Object.assign(new Error(leak), {
      code: leak,
      name: leak,
      request: { headers: leak },
      body: leak,
    });
    log.error("failed", { error: inner, reason: leak });
    log.error("failed", { error: new AggregateError([inner], leak, { cause: inner }) });
    log.event("failed", { durationMs: 1, error: leak });
    log.child({ reason: leak }).info("x");
    assert.equal(lines.length, 4);
    const text = inspect(lines, { depth: 20, maxStringLength: null });
    assert.ok(!text.includes("CANARY"), `${leak} in ${text}`);
  }
});

test("a service account token is recognized without a header around it", () => {
  const { log, lines } = createFixture();
  log.error("failed", { error: new Error(`token ${jwt} expired`), reason: jwt });
  const text = JSON.stringify(lines);
  assert.ok(!text.includes("eyJ") && !text.includes("c2lnbmF0dXJl"), text);
  assert.ok(text.includes("expired"));
});

test("an object never gets into a line, neither as a field nor under an unlisted name", () => {
  class Token {
    readonly value = canary;
  }
  const { log, lines } = createFixture();
  // @ts-expect-error an object is not a field value
  log.info("x", { reason: new Token() });
  // @ts-expect-error the name is not in the list
  log.info("x", { token: canary });
  log.info(
    "x",
    JSON.parse(`{"__proto__":"${canary}","instance":"${canary}","level":"${canary}"}`) as LogFields,
  );
  log.error("x", { error: new Token() });
  log.error("x", { error: { message: new Token() } });
  assert.equal(lines.length, 5);
  assert.ok(!JSON.stringify(lines).includes("CANARY"));
  assert.equal(lines[0]?.["reason"], "[not a primitive]");
});

test("no field has the name of a built-in part of a line", () => {
  for (const name of ["time", "level", "msg", "instance", "error"])
    assert.ok(!(name in logFieldCatalogue), name);
});
