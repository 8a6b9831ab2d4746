import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import {
  CircuitBreaker,
  type CircuitBreakerDeps,
  CircuitOpenError,
  type CircuitState,
} from "./circuit-breaker.ts";

class PeerIsDown extends Error {}
class RequestIsWrong extends Error {}

function setUp(deps: Partial<CircuitBreakerDeps> = {}) {
  const clock = new FakeClock();
  const transitions: string[] = [];
  const requests: CircuitState[] = [];
  const failures: CircuitState[] = [];
  const breaker = new CircuitBreaker(
    { name: "deployments" },
    {
      clock,
      countsAsFailure: (error) => error instanceof PeerIsDown,
      observer: {
        onTransition: (from, to) => transitions.push(`${from} > ${to} at ${clock.nowMs()}`),
        onRequest: (state) => requests.push(state),
        onFailure: (state) => failures.push(state),
      },
      ...deps,
    },
  );
  const succeed = () => breaker.execute(async () => "answer");
  const fail = (error: Error = new PeerIsDown()) =>
    assert.rejects(
      breaker.execute(() => Promise.reject(error)),
      error,
    );
  const trip = async () => {
    for (let failure = 0; failure < 5; failure++) await fail();
    assert.equal(breaker.state, "open");
  };
  return { clock, breaker, transitions, requests, failures, succeed, fail, trip };
}

/** A call that has been let through and waits for the test to end it. */
function startCall(breaker: CircuitBreaker) {
  let succeed: () => void = () => undefined;
  let fail: (error: Error) => void = () => undefined;
  const ended = breaker
    .execute(
      () =>
        new Promise<void>((resolve, reject) => {
          succeed = resolve;
          fail = reject;
        }),
    )
    .catch((error: unknown) => error);
  return {
    succeed: async () => {
      succeed();
      await ended;
    },
    fail: async (error: Error) => {
      fail(error);
      assert.equal(await ended, error);
    },
    ended,
  };
}

async function refusal(breaker: CircuitBreaker): Promise<CircuitOpenError> {
  let wasCalled = false;
  const error = await breaker
    .execute(async () => {
      wasCalled = true;
    })
    .catch((error: unknown) => error);
  assert.equal(wasCalled, false);
  assert.ok(error instanceof CircuitOpenError);
  return error;
}

test("a closed breaker passes on values and errors", async () => {
  const { succeed, fail, breaker } = setUp();
  assert.equal(await succeed(), "answer");
  await fail();
  await fail(new RequestIsWrong());
  assert.equal(breaker.state, "closed");
});

test("the fifth failure within 5 seconds trips it, successes in between or not", async () => {
  const { clock, breaker, succeed, fail, transitions } = setUp();
  for (let failure = 0; failure < 4; failure++) {
    await fail();
    await succeed();
    await clock.advance(1_000);
  }
  assert.equal(breaker.state, "closed");
  await clock.advance(999);
  await fail();
  assert.equal(breaker.state, "open");
  assert.deepEqual(transitions, ["closed > open at 4999"]);
});

test("five failures over more than 5 seconds do not trip it, wherever the window starts", async () => {
  const { clock, breaker, fail } = setUp();
  for (let failure = 0; failure < 40; failure++) {
    await fail();
    await clock.advance(1_250);
  }
  assert.equal(breaker.state, "closed");
});

test("a call that throws synchronously counts like any other", async () => {
  const { breaker } = setUp();
  for (let failure = 0; failure < 5; failure++)
    await assert.rejects(
      breaker.execute(() => {
        throw new PeerIsDown();
      }),
      PeerIsDown,
    );
  assert.equal(breaker.state, "open");
});

test("a thousand errors that do not count as failures do not trip it", async () => {
  const { breaker, fail } = setUp();
  for (let failure = 0; failure < 1_000; failure++) await fail(new RequestIsWrong());
  assert.equal(breaker.state, "closed");
});

test("an open breaker makes no call for 60 seconds after the trip, and tells how long it stays open", async () => {
  const { clock, breaker, trip } = setUp();
  await clock.advance(1_000_000);
  await trip();
  assert.equal((await refusal(breaker)).retryAfterMs, 60_000);
  await clock.advance(59_999);
  const { code, retryAfterMs } = await refusal(breaker);
  assert.deepEqual({ code, retryAfterMs }, { code: "tripped", retryAfterMs: 1 });
  await clock.advance(1);
  assert.equal(breaker.state, "halfopen");
});

test("ten probes that succeed close it, however far apart they are", async () => {
  const { clock, breaker, trip, succeed, transitions } = setUp();
  await trip();
  for (let probe = 0; probe < 10; probe++) {
    await clock.advance(60_000);
    assert.equal(breaker.state, "halfopen");
    await succeed();
  }
  assert.equal(breaker.state, "closed");
  assert.deepEqual(transitions, [
    "closed > open at 0",
    "open > halfopen at 60000",
    "halfopen > closed at 600000",
  ]);
});

test("half-open lets ten probes through at a time, and turns away an eleventh without calling it", async () => {
  const { clock, breaker, trip } = setUp();
  await trip();
  await clock.advance(60_000);
  const probes = Array.from({ length: 10 }, () => startCall(breaker));
  const { code, retryAfterMs } = await refusal(breaker);
  assert.equal(code, "too_many_probes");
  assert.ok(retryAfterMs > 0);
  for (const probe of probes) await probe.succeed();
  assert.equal(breaker.state, "closed");
});

test("a probe that succeeded keeps its slot, so no more than ten calls decide", async () => {
  const { clock, breaker, trip, succeed } = setUp();
  await trip();
  await clock.advance(60_000);
  for (let probe = 0; probe < 9; probe++) await succeed();
  const last = startCall(breaker);
  assert.equal((await refusal(breaker)).code, "too_many_probes");
  await last.succeed();
  assert.equal(breaker.state, "closed");
});

test("after probe(), probes are let through before the open time is over", async () => {
  const { breaker, clock, transitions, succeed, trip } = setUp();
  breaker.probe();
  assert.equal(breaker.state, "closed", "a closed one needs none");
  await trip();
  await clock.advance(1_000);
  breaker.probe();
  assert.equal(breaker.state, "halfopen");
  for (let probe = 1; probe <= 10; probe++) await succeed();
  assert.equal(breaker.state, "closed");
  assert.deepEqual(transitions, [
    "closed > open at 0",
    "open > halfopen at 1000",
    "halfopen > closed at 1000",
  ]);
});

test("probes that were in flight before probe() no longer count", async () => {
  const { breaker, succeed, trip, clock } = setUp();
  await trip();
  await clock.advance(60_000);
  const hanging = startCall(breaker);
  breaker.probe();
  await hanging.fail(new PeerIsDown());
  assert.equal(breaker.state, "halfopen");
  for (let probe = 1; probe <= 10; probe++) await succeed();
  assert.equal(breaker.state, "closed");
});

test("one failed probe opens it again for the full time, counted from that failure", async () => {
  const { clock, breaker, trip, succeed, fail } = setUp();
  await trip();
  await clock.advance(70_000);
  for (let probe = 0; probe < 9; probe++) await succeed();
  await fail();
  assert.equal(breaker.state, "open");
  assert.equal((await refusal(breaker)).retryAfterMs, 60_000);
  await clock.advance(60_000);
  for (let probe = 0; probe < 10; probe++) await succeed();
  assert.equal(breaker.state, "closed");
});

test("a probe that is neither success nor failure frees its slot", async () => {
  const { clock, breaker, trip, succeed, fail } = setUp();
  await trip();
  await clock.advance(60_000);
  for (let probe = 0; probe < 30; probe++) await fail(new RequestIsWrong());
  assert.equal(breaker.state, "halfopen");
  for (let probe = 0; probe < 10; probe++) await succeed();
  assert.equal(breaker.state, "closed");
});

test("a classifier that throws frees the slot", async () => {
  const bug = new Error("bug in the classifier");
  let isBroken = false;
  const { clock, breaker, trip, succeed } = setUp({
    countsAsFailure: () => {
      if (isBroken) throw bug;
      return true;
    },
  });
  await trip();
  await clock.advance(60_000);
  isBroken = true;
  await assert.rejects(
    breaker.execute(() => Promise.reject(new PeerIsDown())),
    bug,
  );
  await clock.advance(60_000);
  for (let probe = 0; probe < 10; probe++) await succeed();
  assert.equal(breaker.state, "closed");
});

test("late failures from before the trip neither extend the open time nor fail a probe", async () => {
  const { clock, breaker, trip, succeed } = setUp();
  const early = Array.from({ length: 20 }, () => startCall(breaker));
  await trip();
  await clock.advance(30_000);
  for (const call of early.slice(0, 10)) await call.fail(new PeerIsDown());
  assert.equal((await refusal(breaker)).retryAfterMs, 30_000);
  await clock.advance(30_000);
  await succeed();
  for (const call of early.slice(10)) await call.fail(new PeerIsDown());
  assert.equal(breaker.state, "halfopen");
  for (let probe = 0; probe < 9; probe++) await succeed();
  assert.equal(breaker.state, "closed");
});

test("late successes from before the trip do not close it", async () => {
  const { clock, breaker, trip, fail } = setUp();
  const early = Array.from({ length: 20 }, () => startCall(breaker));
  await trip();
  for (const call of early.slice(0, 10)) await call.succeed();
  assert.equal(breaker.state, "open");
  await clock.advance(60_000);
  await fail(new RequestIsWrong());
  for (const call of early.slice(10)) await call.succeed();
  assert.equal(breaker.state, "halfopen");
});

test("probes of an earlier half-open phase do not count in a later one", async () => {
  const { clock, breaker, trip, fail } = setUp();
  await trip();
  await clock.advance(60_000);
  const early = Array.from({ length: 9 }, () => startCall(breaker));
  await fail();
  await clock.advance(60_000);
  const probes = Array.from({ length: 10 }, () => startCall(breaker));
  for (const call of early.slice(0, 3)) await call.succeed();
  for (const call of early.slice(3, 6)) await call.fail(new PeerIsDown());
  for (const call of early.slice(6)) await call.fail(new RequestIsWrong());
  assert.equal((await refusal(breaker)).code, "too_many_probes");
  for (const probe of probes) await probe.succeed();
  assert.equal(breaker.state, "closed");
});

test("a breaker that closed starts counting from zero", async () => {
  const { clock, breaker, trip, succeed, fail } = setUp();
  await trip();
  await clock.advance(60_000);
  for (let probe = 0; probe < 10; probe++) await succeed();
  for (let failure = 0; failure < 4; failure++) await fail();
  assert.equal(breaker.state, "closed");
});

test("the observer gets each request with its state, turned away or not, and each failure", async () => {
  const { clock, breaker, trip, succeed, fail, requests, failures } = setUp();
  await trip();
  await refusal(breaker);
  await clock.advance(60_000);
  await succeed();
  await fail(new RequestIsWrong());
  await fail();
  assert.deepEqual(requests, [...Array(5).fill("closed"), "open", "halfopen", "halfopen", "halfopen"]);
  assert.deepEqual(failures, [...Array(5).fill("closed"), "halfopen"]);
});

test("an observer that throws changes nothing", async () => {
  const broken = () => {
    throw new Error("bad label");
  };
  const { breaker, succeed, trip } = setUp({
    observer: { onRequest: broken, onFailure: broken, onTransition: broken },
  });
  assert.equal(await succeed(), "answer");
  await trip();
  assert.equal((await refusal(breaker)).code, "tripped");
});
