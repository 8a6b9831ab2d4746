import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { sleep } from "../concurrency/clock.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { createDesiredStream, type DesiredSource, type StreamStatus } from "./desired-stream.ts";
import { type ControlPlaneCode, ControlPlaneError } from "./error.ts";

/** One connection as a server sees it: what it sends, and how it ends. */
type Script = (version: bigint, signal: AbortSignal) => AsyncIterable<bigint>;

function until(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.throwIfAborted();
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

const failing = (code: ControlPlaneCode, retryAfterMs?: number): Script =>
  // biome-ignore lint/correctness/useYield: it fails before it sends anything.
  async function* () {
    throw new ControlPlaneError(code, `Watch: ${code}`, { retryAfterMs });
  };
// biome-ignore lint/correctness/useYield: it sends nothing.
const silent: Script = async function* (_, signal) {
  await until(signal);
};
const ending: Script = async function* () {
  // Accepted, and then nothing.
};
const sending = (...versions: bigint[]): Script =>
  async function* (_, signal) {
    yield* versions;
    await until(signal);
  };

interface Opened {
  readonly atMs: number;
  readonly version: bigint;
}

/** A stream over scripted connections; the last script serves all later ones. */
function streamOver(scripts: readonly Script[], overrides: Partial<DesiredSource<bigint>> = {}) {
  const clock = new FakeClock();
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: process.version });
  const opened: Opened[] = [];
  const states: bigint[] = [];
  const statuses: StreamStatus[] = [];
  const world = { cursor: 0n, open: 0 };
  const stream = createDesiredStream<bigint>(
    {
      controller: "deployments",
      open(version, signal) {
        const script = scripts[Math.min(opened.length, scripts.length - 1)] ?? assert.fail("no script");
        opened.push({ atMs: clock.nowMs(), version });
        world.open += 1;
        signal.addEventListener("abort", () => void world.open--);
        return script(version, signal);
      },
      cursor: () => world.cursor,
      resetCursor: () => {
        world.cursor = 0n;
      },
      onState(version) {
        states.push(version);
        world.cursor = version;
      },
      onStatus: (status) => void statuses.push(status),
      ...overrides,
    },
    { clock, random: createSeededRandom(7), metrics },
  );
  const stop = new AbortController();
  const finish = async (running: Promise<void>) => {
    stop.abort();
    await running;
    assert.equal(stream.status().state, "stopped");
    assert.equal(world.open, 0);
    assert.equal(clock.timerCount, 0);
  };
  return { stream, clock, opened, states, statuses, world, stop, finish, metrics };
}

function gaps(opened: readonly Opened[]): number[] {
  return opened.slice(1).map(({ atMs }, index) => atMs - (opened[index]?.atMs ?? 0));
}

test("a control plane that starts after the agent is connected within 5 s, whenever it starts", async () => {
  // biome-ignore lint/correctness/useYield: it fails before it sends anything.
  const refused: Script = async function* () {
    throw new ControlPlaneError("unavailable", "Watch: connect ECONNREFUSED", { reach: "unreachable" });
  };
  let isUp = false;
  const up = sending(1n);
  const { clock, stream, states } = streamOver([
    (version, signal) => (isUp ? up(version, signal) : refused(version, signal)),
  ]);
  const stop = new AbortController();
  const running = stream.run(stop.signal);
  await clock.advance(600_000);
  assert.equal(stream.status().lastError?.code, "unavailable");
  isUp = true;
  await clock.advance(5_000);
  assert.deepEqual(states, [1n]);
  stop.abort();
  await running;
});

describe("a desired stream", () => {
  test("connects at once, then 1 to 5 s after a connection that delivered something, from the cursor", async () => {
    const script: Script = async function* (version) {
      yield version + 1n;
    };
    const { stream, clock, opened, states, stop, finish } = streamOver([script]);
    const running = stream.run(stop.signal);
    await clock.advance(60_000);
    assert.equal(opened[0]?.atMs, 0);
    assert.ok(opened.length > 10);
    for (const gap of gaps(opened)) assert.ok(gap >= 1_000 && gap <= 5_000, `${gap}`);
    assert.deepEqual(
      opened.map(({ version }) => version),
      opened.map((_, index) => BigInt(index)),
    );
    assert.equal(states.length, opened.length);
    await finish(running);
  });

  test("calls onSign for a connection that lasted a second, and for each state", async () => {
    const signsMs: number[] = [];
    const { stream, clock, opened, stop, finish } = streamOver(
      [failing("unavailable"), sending(1n, 2n), silent],
      { onSign: () => void signsMs.push(clock.nowMs()) },
    );
    const running = stream.run(stop.signal);
    await clock.advance(20_000);
    const [, second = assert.fail("it was not opened again")] = opened;
    assert.deepEqual(signsMs, [second.atMs, second.atMs]);
    stream.reconnectFromZero();
    await clock.advance(60_000);
    assert.deepEqual(signsMs.slice(2), [(opened[2]?.atMs ?? 0) + 1_000]);
    await finish(running);
  });

  test("fails with an error thrown by open(), and leaves no timer behind", async () => {
    const bug = new TypeError("open is broken");
    const { stream, clock, stop } = streamOver([silent], {
      open() {
        throw bug;
      },
    });
    await assert.rejects(stream.run(stop.signal), bug);
    assert.equal(stream.status().state, "stopped");
    assert.equal(clock.timerCount, 0);
  });

  test("backs off up to 60 s while a server accepts and drops it", async () => {
    const { stream, clock, opened, stop, finish } = streamOver([ending]);
    const running = stream.run(stop.signal);
    await clock.advance(3_600_000);
    const caps = [5_000, 10_000, 20_000, 40_000];
    for (const [index, gap] of gaps(opened).entries())
      assert.ok(gap >= 1_000 && gap <= (caps[index] ?? 60_000), `${index}: ${gap}`);
    assert.ok(Math.max(...gaps(opened)) > 45_000);
    // Sixty minutes at a mean of half a minute.
    assert.ok(opened.length > 90 && opened.length < 180, `${opened.length}`);
    await finish(running);
  });

  test("does not back off while a proxy ends silent connections that pings had proved", async () => {
    for (const timeoutMs of [15_000, 30_000, 50_000]) {
      // biome-ignore lint/correctness/useYield: it sends nothing.
      const cut: Script = async function* (_, signal) {
        await sleep(clock, timeoutMs, signal);
        throw new ControlPlaneError("unavailable", "Watch: the proxy ended the connection");
      };
      const { stream, clock, opened, stop, finish } = streamOver([cut]);
      const running = stream.run(stop.signal);
      await clock.advance(3_600_000);
      assert.ok(opened.length > 50, `${opened.length}`);
      for (const gap of gaps(opened)) {
        const waitedMs = gap - timeoutMs;
        assert.ok(waitedMs >= 1_000 && waitedMs <= 5_000, `after ${timeoutMs}: ${waitedMs}`);
      }
      await finish(running);
    }
  });

  test("waits as long as a busy server asks, and shows the error", async () => {
    const { stream, clock, opened, stop, finish } = streamOver([failing("unavailable", 45_000), silent]);
    const running = stream.run(stop.signal);
    await clock.advance(44_999);
    assert.equal(opened.length, 1);
    const { state, lastError, reconnects } = stream.status();
    assert.deepEqual(
      [state, lastError?.code, lastError?.message],
      ["waiting", "unavailable", "Watch: unavailable"],
    );
    assert.equal(reconnects, 0);
    await clock.advance(5_000);
    assert.equal(opened.length, 2);
    await finish(running);
  });

  for (const code of ["unauthenticated", "permission_denied"] as const)
    test(`connects at most twice a minute while the server answers ${code}`, async () => {
      const { stream, clock, opened, stop, finish } = streamOver([failing(code)]);
      const running = stream.run(stop.signal);
      await clock.advance(3_600_000);
      for (const gap of gaps(opened)) assert.ok(gap >= 30_000, `${gap}`);
      assert.ok(opened.length >= 60);
      assert.equal(stream.status().lastError?.code, code);
      await finish(running);
    });

  test("shows the version where it is stuck when every connection fails at the same place", async () => {
    const damaged: Script = async function* () {
      yield 5n;
      throw new ControlPlaneError("internal", "Watch: cannot be read");
    };
    const scripts = [damaged, failing("internal"), failing("unavailable"), failing("internal")];
    const { stream, clock, stop, finish, opened, metrics } = streamOver([
      ...scripts,
      failing("internal"),
      failing("internal"),
      sending(6n),
    ]);
    const running = stream.run(stop.signal);
    const reasonAfter = async (connections: number) => {
      while (opened.length < connections) await clock.advance(100);
      return stream.status().lastError?.message ?? "";
    };
    for (const connections of [1, 2, 3, 4])
      assert.doesNotMatch(await reasonAfter(connections), /stuck/, `after ${connections}`);
    assert.match(await reasonAfter(5), /^stuck behind version 5: Watch: internal$/);
    const counted = /unkey_krane_controlplane_stuck_total\{controller="deployments"\} (\d+)/;
    assert.equal(counted.exec(await metrics.render())?.[1], "1");
    assert.equal(await reasonAfter(7), "");
    assert.equal(counted.exec(await metrics.render())?.[1], "2");
    await finish(running);
  });

  test("is stuck at a message that never becomes whole, but not if the server reports a timeout of its own", async () => {
    for (const { reach, isStuck } of [
      { reach: "broken", isStuck: true },
      { reach: "answered", isStuck: false },
    ] as const) {
      // biome-ignore lint/correctness/useYield: it fails before it sends anything.
      const slow: Script = async function* () {
        throw new ControlPlaneError("deadline_exceeded", "Watch: no whole message", { reach });
      };
      const { stream, clock, stop, finish } = streamOver([slow]);
      const running = stream.run(stop.signal);
      await clock.advance(300_000);
      assert.equal(stream.status().lastError?.message.startsWith("stuck behind version 0: "), isStuck);
      await finish(running);
    }
  });

  test("restarts from 0 at once when the server is behind the cursor, but not in a hot loop", async () => {
    const { stream, clock, opened, world, stop, finish } = streamOver([failing("out_of_range")]);
    world.cursor = 900n;
    const running = stream.run(stop.signal);
    await clock.settle();
    await clock.advance(0);
    assert.deepEqual(
      opened.map(({ atMs, version }) => [atMs, version]),
      [
        [0, 900n],
        [0, 0n],
      ],
    );
    await clock.advance(60_000);
    assert.ok(opened.length < 20, `${opened.length}`);
    await finish(running);
  });

  test("is replayed from 0 on demand, at once, and resumes from the cursor afterwards", async () => {
    const { stream, clock, opened, world, stop, finish } = streamOver([sending(8n, 9n), sending(3n), silent]);
    const running = stream.run(stop.signal);
    await clock.settle();
    stream.reconnectFromZero();
    stream.reconnectFromZero();
    await clock.settle();
    assert.deepEqual(
      opened.map(({ atMs, version }) => [atMs, version]),
      [
        [0, 0n],
        [0, 0n],
      ],
    );
    assert.deepEqual([world.cursor, world.open], [3n, 1]);
    assert.deepEqual([stream.status().reconnects, stream.status().lastError], [0, undefined]);
    await finish(running);
  });

  test("is replayed from 0 even if the old connection delivers a last state after the demand", async () => {
    let take: () => void = () => undefined;
    const world = { cursor: 0n };
    const { stream, clock, opened, stop, finish } = streamOver([sending(9n), silent], {
      cursor: () => world.cursor,
      resetCursor: () => {
        world.cursor = 0n;
      },
      onState: async (version) => {
        await new Promise<void>((resolve) => (take = resolve));
        world.cursor = version;
      },
    });
    const running = stream.run(stop.signal);
    await clock.settle();
    stream.reconnectFromZero();
    take();
    await clock.settle();
    assert.deepEqual(
      opened.map(({ version }) => version),
      [0n, 0n],
    );
    await finish(running);
  });

  test("does not cut a back-off short for a replay", async () => {
    const { stream, clock, opened, world, stop, finish } = streamOver([failing("unauthenticated"), silent]);
    world.cursor = 5n;
    const running = stream.run(stop.signal);
    await clock.settle();
    stream.reconnectFromZero();
    await clock.advance(29_999);
    assert.equal(opened.length, 1);
    await clock.advance(31_000);
    assert.deepEqual(
      opened.map(({ version }) => version),
      [5n, 0n],
    );
    await finish(running);
  });

  test("reads the next state only when onState is done with the last one", async () => {
    let produced = 0;
    let take: () => void = () => undefined;
    const script: Script = async function* () {
      for (;;) yield BigInt(++produced);
    };
    const { stream, clock, stop, finish } = streamOver([script], {
      onState: () => new Promise<void>((resolve) => (take = resolve)),
    });
    const running = stream.run(stop.signal);
    for (let taken = 1; taken <= 3; taken++) {
      await clock.settle();
      assert.equal(produced, taken);
      take();
    }
    await clock.settle();
    stop.abort();
    take();
    await finish(running);
  });

  test("reads a flood in small batches, and yields after each", async () => {
    const flood = Array.from({ length: 1_000 }, (_, index) => BigInt(index + 1));
    const { stream, clock, states, stop, finish } = streamOver([sending(...flood)]);
    const running = stream.run(stop.signal);
    await clock.settle();
    assert.ok(states.length > 0 && states.length < 100, `${states.length} without a pause`);
    await clock.advance(1_000);
    assert.deepEqual(states, flood);
    await finish(running);
  });

  test("fails with an error thrown by onState, and leaves no connection", async () => {
    const { stream, world, clock, stop } = streamOver([sending(1n)], {
      onState: () => Promise.reject(new TypeError("a bug")),
    });
    await assert.rejects(stream.run(stop.signal), /a bug/);
    assert.deepEqual([world.open, clock.timerCount, stream.status().state], [0, 0, "stopped"]);
  });

  test("is open with the first state, or after a round of pings without one", async () => {
    const scripts = [failing("unavailable"), sending(1n)];
    const { stream, clock, statuses, stop, finish } = streamOver(scripts);
    const running = stream.run(stop.signal);
    await clock.advance(5_000);
    const states = statuses.map(({ state }) => state);
    assert.deepEqual(
      states.filter((state, index) => state !== states[index - 1]),
      ["connecting", "waiting", "connecting", "open"],
    );
    assert.deepEqual([stream.status().lastError, stream.status().reconnects], [undefined, 1]);
    await finish(running);

    const quiet = streamOver([silent]);
    const quietRun = quiet.stream.run(quiet.stop.signal);
    await quiet.clock.advance(14_999);
    assert.equal(quiet.stream.status().state, "connecting");
    await quiet.clock.advance(1);
    assert.equal(quiet.stream.status().state, "open");
    await quiet.finish(quietRun);
  });

  test("survives an observer that throws", async () => {
    const { stream, clock, states, stop, finish } = streamOver([sending(1n, 2n)], {
      onStatus: () => assert.fail("the observer has a bug"),
    });
    const running = stream.run(stop.signal);
    await clock.settle();
    assert.deepEqual(states, [1n, 2n]);
    await finish(running);
  });

  test("counts reconnects", async () => {
    const { stream, clock, opened, metrics, stop, finish } = streamOver([failing("internal")]);
    const running = stream.run(stop.signal);
    await clock.advance(100_000);
    const again = opened.length - 1;
    assert.ok(again > 3);
    assert.equal(stream.status().reconnects, again);
    const counted = new RegExp(`controlplane_reconnects_total{controller="deployments"} ${again}\\n`);
    assert.match(await metrics.render(), counted);
    await finish(running);
  });

  test("does nothing if the signal is already aborted, and can be run again", async () => {
    const { stream, clock, opened } = streamOver([silent]);
    await stream.run(AbortSignal.abort());
    assert.equal(opened.length, 0);
    const again = new AbortController();
    const running = stream.run(again.signal);
    await clock.settle();
    assert.equal(opened.length, 1);
    again.abort();
    await running;
  });
});

describe("1,000 agents", () => {
  /** Connects in each second after all lost the control plane at once, which stays away for a while. */
  async function reconnects(outageMs: number): Promise<number[]> {
    const clock = new FakeClock();
    const stop = new AbortController();
    const perSecond: number[] = [];
    let phase: "up" | "down" | "back" = "up";
    const cut = new AbortController();
    const runs = Array.from({ length: 1_000 }, (_, seed) => {
      // biome-ignore lint/correctness/useYield: the test counts connections, not states.
      async function* open(_version: bigint, signal: AbortSignal): AsyncIterable<bigint> {
        if (phase === "back") {
          const second = Math.floor((clock.nowMs() - outageMs) / 1_000);
          perSecond[second] = (perSecond[second] ?? 0) + 1;
          await until(signal);
        }
        if (phase === "down") throw new ControlPlaneError("unavailable", "down");
        await Promise.race([until(signal), until(cut.signal)]);
      }
      const source = { controller: "deployments", open, cursor: () => 0n } as const;
      const stream = createDesiredStream(
        { ...source, resetCursor: () => undefined, onState: () => undefined },
        { clock, random: createSeededRandom(seed) },
      );
      return stream.run(stop.signal);
    });
    await clock.settle();
    phase = outageMs === 0 ? "back" : "down";
    cut.abort();
    await clock.advance(outageMs);
    phase = "back";
    await clock.advance(61_000);
    stop.abort();
    await Promise.all(runs);
    assert.equal(clock.timerCount, 0);
    const connects = Array.from(perSecond, (count) => count ?? 0);
    assert.equal(
      connects.reduce((sum, count) => sum + count, 0),
      1_000,
    );
    return connects;
  }

  test("reconnect over four seconds after a cut, a quarter in each", async () => {
    const connects = await reconnects(0);
    assert.equal(connects[0], 0);
    assert.ok(Math.max(...connects) < 290, String(connects));
  });

  test("reconnect at most at 5 % per second after a long outage", async () => {
    const connects = await reconnects(150_000);
    assert.ok(Math.max(...connects) <= 50, String(connects));
  });
});
