import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { createQuietLog } from "../../../test/support/quiet-log.ts";
import {
  type LogEnd,
  LogEnd_Reason,
  type LogRequest,
  type SendLogLinesRequest,
  SendLogLinesRequestSchema,
} from "../../gen/ctrl/v1/logs_pb.ts";
import { LineBuffer } from "./line-buffer.ts";
import { LogBroker } from "./log-broker.ts";
import type { ServerChannel } from "./server-channel.ts";

const region = "local.dev";
const never = new AbortController().signal;
const asked = { k8sNamespace: "acme", k8sName: "web", deploymentId: "d_web", follow: true };

/** Two servers of one database; everything that it passes on can be seen. */
class Channel implements ServerChannel {
  readonly passedOn: string[] = [];
  private readonly listeners: ((message: string) => void)[] = [];

  async publish(messages: readonly string[]): Promise<void> {
    this.passedOn.push(...messages);
    for (const message of messages) for (const listener of this.listeners) listener(message);
  }

  async listen(onMessage: (message: string) => void): Promise<void> {
    this.listeners.push(onMessage);
  }
}

function start(channel?: ServerChannel) {
  const clock = new FakeClock();
  const broker = new LogBroker({ clock, log: createQuietLog(), channel });
  return { clock, broker };
}

async function agentOf(broker: LogBroker) {
  const requests = broker.requests(region, never);
  assert.equal((await requests.next()).value?.ticket.length, 0);
  return { next: async (): Promise<LogRequest> => (await requests.next()).value ?? assert.fail("it ended") };
}

interface Sent {
  readonly before?: number;
  readonly texts?: readonly string[];
  readonly instanceId?: string;
  readonly end?: LogEnd_Reason;
}

function linesFor({ ticket }: LogRequest, { before = 0, texts = [], instanceId = "ins_1", end }: Sent) {
  return create(SendLogLinesRequestSchema, {
    ticket,
    instanceId,
    linesBefore: BigInt(before),
    entries: texts.map((text) => ({ podName: "web-1", text })),
    ...(end !== undefined && { end: { reason: end, message: "over" } }),
  }) as SendLogLinesRequest;
}

function openOne(broker: LogBroker, follow = true) {
  const buffer = new LineBuffer();
  const ends: (LogEnd | undefined)[] = [];
  const close = broker.open({ region, buffer, onEnd: (end) => ends.push(end) }, { ...asked, follow });
  return { buffer, ends, close };
}

/** What a reader gets that takes everything there is. */
async function readAll(buffer: LineBuffer): Promise<readonly (string | bigint)[]> {
  buffer.close();
  const got: (string | bigint)[] = [];
  for await (const { entry, dropped } of buffer.read(never)) got.push(entry?.text ?? dropped);
  return got;
}

describe("the broker of logs", () => {
  test("passes lines from the agent of the region to the reader, until nobody reads them", async () => {
    const { broker } = start();
    const agent = await agentOf(broker);
    const { buffer, close } = openOne(broker);
    const request = await agent.next();
    assert.equal(request.deploymentId, "d_web");
    assert.equal(await broker.receive(region, linesFor(request, { texts: ["a", "b"] })), true);
    close();
    assert.equal(await broker.receive(region, linesFor(request, { before: 2, texts: ["c"] })), false);
    assert.deepEqual(await readAll(buffer), ["a", "b"]);
  });

  test("takes no lines from another region, another agent or for a ticket that it did not make", async () => {
    const { broker } = start();
    const agent = await agentOf(broker);
    const { buffer } = openOne(broker);
    const request = await agent.next();
    assert.equal(await broker.receive("other.dev", linesFor(request, { texts: ["forged"] })), false);
    assert.equal(await broker.receive(region, linesFor(request, { texts: ["a"] })), true);
    const second = linesFor(request, { before: 1, texts: ["forged"], instanceId: "ins_2" });
    assert.equal(await broker.receive(region, second), false);
    const strange = create(SendLogLinesRequestSchema, { ticket: Buffer.from("no ticket") });
    await assert.rejects(broker.receive(region, strange), /ticket is not one of ours/);
    assert.deepEqual(await readAll(buffer), ["a"]);
  });

  test("tells how many lines got lost on the way", async () => {
    const { broker } = start();
    const agent = await agentOf(broker);
    const { buffer } = openOne(broker);
    const request = await agent.next();
    await broker.receive(region, linesFor(request, { texts: ["a"] }));
    await broker.receive(region, linesFor(request, { before: 4, texts: ["e"] }));
    assert.deepEqual(await readAll(buffer), ["a", 3n, "e"]);
  });

  test("keeps a limited amount for a slow reader, and tells it what was dropped, where", async () => {
    const { broker } = start();
    const agent = await agentOf(broker);
    const { buffer } = openOne(broker);
    const request = await agent.next();
    const text = "x".repeat(1_000);
    for (let before = 0; before < 10_000; before += 100)
      await broker.receive(region, linesFor(request, { before, texts: Array(100).fill(text) }));
    const reading = buffer.read(never);
    let kept = 0;
    for (;;) {
      const { value } = await reading.next();
      if (value?.entry === undefined) {
        assert.equal(value?.dropped, BigInt(10_000 - kept));
        break;
      }
      kept += 1;
    }
    assert.ok(kept > 100 && kept < 600, String(kept));
    await broker.receive(region, linesFor(request, { before: 10_000, texts: ["newest"] }));
    assert.equal((await reading.next()).value?.entry?.text, "newest");
  });

  test("makes the agent wait for who reads a log to its end, instead of dropping lines", async () => {
    const { broker } = start();
    const agent = await agentOf(broker);
    const { buffer } = openOne(broker, false);
    const request = await agent.next();
    let before = 0;
    const batch = () => linesFor(request, { before, texts: Array(100).fill("x".repeat(1_000)) });
    while (!buffer.isFull) {
      const sent = broker.receive(region, batch());
      before += 100;
      if (!buffer.isFull) await sent;
      else {
        const reading = buffer.read(never);
        for (let n = 0; n < before; n++) assert.equal((await reading.next()).value?.dropped, 0n);
        assert.equal(await sent, true);
        return;
      }
    }
  });

  test("ends a reader whose agent falls silent, and one that nobody answers", async () => {
    const { broker, clock } = start();
    const agent = await agentOf(broker);
    const answered = openOne(broker);
    await broker.receive(region, linesFor(await agent.next(), {}));
    const ignored = openOne(broker);
    await clock.advance(9_500);
    assert.deepEqual([answered.ends, ignored.ends], [[], [undefined]]);
    await clock.advance(4_000);
    assert.deepEqual(answered.ends, [undefined]);
    assert.equal(broker.openCount, 0);
    assert.equal(clock.timerCount, 0);
  });

  test("says why a log has ended", async () => {
    const { broker } = start();
    const agent = await agentOf(broker);
    const { ends } = openOne(broker);
    const request = await agent.next();
    assert.equal(
      await broker.receive(region, linesFor(request, { texts: ["a"], end: LogEnd_Reason.FORBIDDEN })),
      false,
    );
    assert.equal(ends[0]?.reason, LogEnd_Reason.FORBIDDEN);
  });

  test("reaches an agent whose stream is open to another server, and shows its lines to nobody on the way", async () => {
    const channel = new Channel();
    const [one, other] = [start(channel), start(channel)];
    const agent = await agentOf(other.broker);
    const { buffer, close } = openOne(one.broker);
    const request = await agent.next();
    const long = "secret ".repeat(3_000);
    assert.equal(await other.broker.receive(region, linesFor(request, { texts: ["secret 1", long] })), true);
    assert.equal(await other.broker.receive(region, linesFor(request, { before: 2, texts: ["3"] })), true);
    assert.deepEqual(await readAll(buffer), ["secret 1", long, "3"]);
    assert.ok(channel.passedOn.every((message) => message.length < 7_950));
    const everything = channel.passedOn.join() + channel.passedOn.map(decoded).join();
    assert.ok(!everything.includes("secret"));
    close();
    assert.equal(await other.broker.receive(region, linesFor(request, { before: 3 })), false);
  });

  test("stops an agent when the other server is gone with its reader", async () => {
    const channel = new Channel();
    const [one, other] = [start(channel), start(channel)];
    const agent = await agentOf(other.broker);
    openOne(one.broker);
    const request = await agent.next();
    const ask = () => other.broker.receive(region, linesFor(request, {}));
    for (let second = 0; second < 30; second++) {
      assert.equal(await ask(), true);
      await one.clock.advance(1_000);
      await other.clock.advance(1_000);
    }
    // That server is gone.
    await other.clock.advance(13_000);
    assert.equal(await ask(), false);
  });

  test("tells a reader how many lines the way between servers lost", async () => {
    const channel = new Channel();
    const [one, other] = [start(channel), start(channel)];
    const agent = await agentOf(other.broker);
    const { buffer } = openOne(one.broker);
    const request = await agent.next();
    await other.broker.receive(region, linesFor(request, { texts: ["a"] }));
    // More than the database has to carry in a second.
    const flood = Array(600).fill("x".repeat(4_000));
    await other.broker.receive(region, linesFor(request, { before: 1, texts: flood }));
    await other.broker.receive(region, linesFor(request, { before: 601, texts: ["lost", "too"] }));
    await other.clock.advance(5_000);
    await other.broker.receive(region, linesFor(request, { before: 603, texts: ["z"] }));
    const got = await readAll(buffer);
    const shown = got.filter((each) => typeof each === "string").length;
    const lost = got.filter((each) => typeof each === "bigint").reduce((sum, each) => sum + each, 0n);
    assert.equal(got[0], "a");
    assert.equal(BigInt(shown) + lost, 604n);
    assert.ok(lost >= 2n);
  });
});

function decoded(message: string): string {
  const { data = "" } = JSON.parse(message) as { readonly data?: string };
  return message.includes('"lines"') ? Buffer.from(data, "base64").toString("latin1") : "";
}
