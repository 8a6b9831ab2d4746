import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, createContextValues } from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { peerAddress } from "./call-admission.ts";
import { StreamPlaces, type StreamPlacesOptions } from "./stream-places.ts";

/** Yields one message and then hangs, ignoring the signal. */
async function* deafStream() {
  yield "first";
  await new Promise<never>(() => undefined);
}

function open(options: StreamPlacesOptions) {
  const clock = new FakeClock();
  const places = new StreamPlaces(options, { clock });
  const hold = (address = "10.0.0.1") => {
    const leaving = new AbortController();
    const values = createContextValues().set(peerAddress, address);
    return { stream: places.hold(deafStream(), { signal: leaving.signal, values }), leaving };
  };
  return { clock, hold };
}

const exhausted = { code: Code.ResourceExhausted };

describe("places for streams", () => {
  test("a stream beyond the limit is rejected, until a client leaves", async () => {
    const { hold } = open({ streamsMax: 2 });
    const first = hold();
    assert.deepEqual(await first.stream.next(), { done: false, value: "first" });
    await hold("10.0.0.2").stream.next();
    await assert.rejects(hold("10.0.0.3").stream.next(), exhausted);
    first.leaving.abort();
    assert.deepEqual(await hold("10.0.0.3").stream.next(), { done: false, value: "first" });
  });

  test("one address gets only its share", async () => {
    const { hold } = open({ streamsMax: 3, perHolderMax: 2 });
    const first = hold();
    await first.stream.next();
    await hold().stream.next();
    await assert.rejects(hold().stream.next(), exhausted);
    await hold("10.0.0.2").stream.next();
    await first.stream.return(undefined);
    await hold().stream.next();
  });

  test("a stream ends after its maximum duration, even while it waits for its client", async () => {
    const { clock, hold } = open({ streamsMax: 1, lifetimeMs: 1_000 });
    const { stream } = hold();
    await stream.next();
    const ending = assert.rejects(stream.next(), { code: Code.DeadlineExceeded });
    await clock.advance(1_000);
    await ending;
    await hold().stream.next();
  });

  test("a stream's place is free after its maximum duration, even if its client is idle", async () => {
    const { clock, hold } = open({ streamsMax: 1, lifetimeMs: 1_000 });
    const { stream } = hold();
    await stream.next();
    await clock.advance(1_000);
    await hold().stream.next();
    await assert.rejects(stream.next(), { code: Code.DeadlineExceeded });
    await assert.rejects(hold().stream.next(), exhausted, "a place is given back once");
  });

  test("the timer is cancelled when the client leaves", async () => {
    const { clock, hold } = open({ streamsMax: 1, lifetimeMs: 1_000 });
    const { stream, leaving } = hold();
    await stream.next();
    leaving.abort();
    assert.equal(clock.timerCount, 0);
  });
});
