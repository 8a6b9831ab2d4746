import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { eventually } from "../../../test/support/eventually.ts";
import {
  AdminService,
  type StreamLogsRequest,
  StreamLogsResponseSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { LogReading } from "./log-reading.ts";
import { Model } from "./model.ts";

type Message = MessageInitShape<typeof StreamLogsResponseSchema>;
/** What a stream sends, and what it ends with: nothing more, its end, or an error. */
interface Script {
  readonly messages?: readonly Message[];
  readonly end?: "open" | "over" | ConnectError;
}

const what = { region: "eu.aws", target: { case: "deploymentId", value: "d_web" } } as const;
const line = (podName: string, second: number, text: string): Message => ({
  entry: { podName, timeNs: BigInt(second) * 1_000_000_000n, text },
});

/** Streams are answered by the scripts in turn. Timers run when the test says so. */
function setUp(...scripts: readonly Script[]) {
  const asked: StreamLogsRequest[] = [];
  let open = 0;
  const transport = createRouterTransport(({ service }) => {
    service(AdminService, {
      async *streamLogs(request, { signal }) {
        const { messages = [], end = "open" } = scripts[asked.length] ?? {};
        asked.push(request);
        open += 1;
        try {
          for (const message of messages) yield create(StreamLogsResponseSchema, message);
          if (end instanceof ConnectError) throw end;
          if (end === "open") await new Promise((resolve) => signal.addEventListener("abort", resolve));
        } finally {
          open -= 1;
        }
      },
    });
  });
  const timers = new Set<{ readonly delayMs: number; readonly work: () => void }>();
  let nowMs = 1_000_000;
  const browser = {
    nowMs: () => nowMs,
    after(delayMs: number, work: () => void) {
      const timer = { delayMs, work };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  };
  const model = new Model(createClient(AdminService, transport), browser, { pathname: "/", search: "" });
  const reading = new LogReading(model, what);
  return {
    ...{ asked, reading, model, timers },
    open: () => open,
    advance(ms: number) {
      nowMs += ms;
      for (const timer of [...timers]) {
        if (timer.delayMs > ms) continue;
        timers.delete(timer);
        timer.work();
      }
    },
    becomes: (kind: string) =>
      eventually(`the log is ${kind}`, async () => assert.equal(reading.state.value.kind, kind)),
    texts: () => reading.texts.value.lines.map(({ text }) => text),
  };
}

test("nothing is read before it is opened or after it is closed", async () => {
  const world = setUp({ messages: [line("web-a", 1, "one"), line("web-b", 2, "two")] });
  assert.deepEqual([world.asked.length, world.reading.state.value.kind], [0, "closed"]);
  world.reading.open();
  await world.becomes("following");
  await eventually("both lines are shown", async () => {
    world.advance(200);
    assert.deepEqual(world.texts(), ["one", "two"]);
  });
  const [request] = world.asked;
  assert.deepEqual(
    [request?.target, request?.follow, request?.tailLines, request?.positions],
    [what.target, true, 100, []],
  );
  world.reading.close();
  await eventually("the stream is closed", async () => assert.equal(world.open(), 0));
  assert.equal(world.reading.state.value.kind, "closed");
});

test("a pause closes the stream, and it goes on behind the last line of each pod", async () => {
  const world = setUp(
    { messages: [line("web-a", 1, "one"), line("web-b", 2, "two"), line("web-a", 3, "three")] },
    { messages: [line("web-a", 4, "four")] },
  );
  world.reading.open();
  await eventually("all are there", async () => {
    world.advance(200);
    assert.equal(world.texts().length, 3);
  });
  world.reading.pause();
  await eventually("the stream is closed", async () => assert.equal(world.open(), 0));
  assert.equal(world.reading.state.value.kind, "paused");
  world.advance(30_000);
  world.reading.resume();
  await eventually("the next one follows", async () => {
    world.advance(200);
    assert.deepEqual(world.texts(), ["one", "two", "three", "four"]);
  });
  const [, again] = world.asked;
  assert.deepEqual(
    again?.positions.map(({ podName, timeNs }) => [podName, timeNs]),
    [
      ["web-b", 2_000_000_000n],
      ["web-a", 3_000_000_000n],
    ],
  );
  assert.deepEqual([again?.tailLines, again?.sinceMs], [undefined, 30_000n]);
  world.reading.close();
});

test("a pause before the first line loses nothing", async () => {
  const world = setUp({}, { messages: [line("web-a", 1, "one")] });
  world.reading.open();
  await eventually("it is asked", async () => assert.equal(world.asked.length, 1));
  world.reading.pause();
  world.reading.resume();
  await world.becomes("following");
  assert.deepEqual([world.asked[1]?.tailLines, world.asked[1]?.sinceMs], [100, 0n]);
  world.reading.close();
});

test("a refusal is said in the words of the server, and is not repeated", async () => {
  for (const [code, reason] of [
    [Code.PermissionDenied, "the token bob may not read logs; use one with the role logs or read-write+logs"],
    [Code.FailedPrecondition, "the agent of region eu.aws does not serve logs; set agent.logs.enabled=true"],
    [Code.Unavailable, "the agent of region eu.aws does not answer, or is not connected; see krane status"],
  ] as const) {
    const world = setUp({ end: new ConnectError(reason, code) });
    world.reading.open();
    await world.becomes("refused");
    assert.deepEqual(world.reading.state.value, { kind: "refused", reason });
    assert.equal(world.timers.size, 0);
  }
});

test("a stream that is cut is opened again when the server says so, and a lasting refusal ends it", async () => {
  const busy = new ConnectError("too many", Code.ResourceExhausted, { "retry-after": "30" });
  const world = setUp(
    { messages: [line("web-a", 1, "one")], end: busy },
    { end: new ConnectError("the token ann may not read logs", Code.PermissionDenied) },
  );
  world.reading.open();
  await world.becomes("cut");
  assert.deepEqual(world.texts(), ["one"]);
  world.advance(29_999);
  assert.equal(world.asked.length, 1);
  world.advance(30_000);
  await world.becomes("refused");
  assert.equal(world.asked[1]?.positions.length, 1);
  assert.deepEqual(world.texts(), ["one"], "what was read stays");
});

test("a stream that reached its longest duration is opened again silently", async () => {
  const over = new ConnectError("the log was read for an hour", Code.DeadlineExceeded);
  const world = setUp({ end: over }, { messages: [line("web-a", 1, "one")] });
  world.reading.open();
  await eventually("it waits", async () => assert.equal(world.timers.size, 1));
  assert.equal(world.reading.state.value.kind, "opening");
  world.advance(2_000);
  await world.becomes("following");
  world.reading.close();
});

test("closing while it waits to be opened again ends it", async () => {
  const world = setUp({
    messages: [line("web-a", 1, "one")],
    end: new ConnectError("gone", Code.Unavailable),
  });
  world.reading.open();
  await world.becomes("cut");
  world.reading.close();
  world.advance(60_000);
  assert.equal(world.asked.length, 1);
});

test("another choice begins from the start, and a log before the restart has an end", async () => {
  const world = setUp(
    { messages: [line("web-a", 1, "one")] },
    { messages: [line("web-b", 2, "it crashed")], end: "over" },
  );
  world.reading.open();
  await world.becomes("following");
  world.reading.open({ podName: "web-b", previous: true, tailLines: 500 });
  await world.becomes("ended");
  assert.deepEqual(world.texts(), ["it crashed", "The log ends here."]);
  const { podName, previous, follow, tailLines, positions } = world.asked[1] ?? {};
  assert.deepEqual([podName, previous, follow, tailLines, positions], ["web-b", true, false, 500, []]);
});

test("the end of the session leads to the page that signs in", async () => {
  const world = setUp({ end: new ConnectError("the session has ended", Code.Unauthenticated) });
  world.reading.open();
  await eventually("signed out", async () => assert.equal(world.model.signedIn.value.kind, "out"));
});
