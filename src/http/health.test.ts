import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { describe, type TestContext, test } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { fetchHttp1 } from "../../test/support/http-clients.ts";
import { createHealth, type Health, type HealthCheck } from "./health.ts";
import { routeByPath } from "./http-handler.ts";

const never = () => new Promise<never>(() => undefined);

async function serve(t: TestContext, checks: Record<string, HealthCheck> = {}) {
  const clock = new FakeClock();
  const health = createHealth(new Map(Object.entries(checks)), { clock });
  const handler = routeByPath(health.routes());
  const server = createServer((request, response) => void handler(request, response)).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const address = server.address();
  assert.ok(typeof address === "object" && address);
  const ask = (path: string, method = "GET") =>
    fetchHttp1(`http://127.0.0.1:${address.port}${path}`, { method });
  return { clock, health, ask };
}

const phases: readonly (readonly [string, (health: Health) => void, Record<string, [number, string]>])[] = [
  [
    "before the start every endpoint is 503",
    () => undefined,
    {
      "/health/live": [503, '{"status":"not started"}\n'],
      "/health/startup": [503, '{"status":"not started"}\n'],
      "/health/ready": [503, '{"status":"not started"}\n'],
    },
  ],
  [
    "while running every endpoint is 200",
    (health) => health.markStarted(),
    {
      "/health/live": [200, '{"status":"ok"}\n'],
      "/health/startup": [200, '{"status":"ok"}\n'],
      "/health/ready": [200, '{"status":"ok"}\n'],
    },
  ],
  [
    "while shutting down krane is alive but not ready",
    (health) => {
      health.markStarted();
      health.markShuttingDown();
    },
    {
      "/health/live": [200, '{"status":"ok"}\n'],
      "/health/startup": [200, '{"status":"ok"}\n'],
      "/health/ready": [503, '{"status":"shutting down"}\n'],
    },
  ],
];

describe("health endpoints", () => {
  for (const [sentence, bring, expected] of phases) {
    test(sentence, async (t) => {
      const { health, ask } = await serve(t);
      bring(health);
      for (const [path, [status, body]] of Object.entries(expected)) {
        const get = await ask(path);
        assert.deepEqual([get.status, get.body], [status, body], path);
        assert.equal(get.headers["content-type"], "application/json");
        const head = await ask(path, "HEAD");
        assert.deepEqual([head.status, head.body], [status, ""], path);
      }
    });
  }

  test("other methods get a 405 that lists the allowed ones", async (t) => {
    const { ask } = await serve(t);
    for (const path of ["/health/live", "/health/startup", "/health/ready"]) {
      for (const method of ["POST", "PUT", "DELETE", "OPTIONS"]) {
        const response = await ask(path, method);
        assert.deepEqual([response.status, response.headers.allow], [405, "GET, HEAD"]);
      }
    }
  });

  test("a late start does not undo a shutdown", async (t) => {
    const { health } = await serve(t);
    health.markShuttingDown();
    health.markStarted();
    assert.equal(health.phase, "shutting down");
  });
});

describe("health checks", () => {
  test("when all checks pass, the status is ok and each is listed by name", async (t) => {
    const { health, ask } = await serve(t, { a: async () => undefined, b: async () => undefined });
    health.markStarted();
    const { status, body } = await ask("/health/ready");
    assert.deepEqual([status, JSON.parse(body)], [200, { status: "ok", checks: { a: "ok", b: "ok" } }]);
  });

  test("a failing check is shown but krane stays ready, even if the check throws synchronously or a non-error", async (t) => {
    const { health, ask } = await serve(t, {
      good: async () => undefined,
      rejects: () => Promise.reject(new Error("connection refused")),
      throws: () => {
        throw new Error("bad address");
      },
      wordless: () => Promise.reject(new Error("")),
      endless: () => Promise.reject(new Error("x".repeat(10_000))),
    });
    health.markStarted();
    const { status, body } = await ask("/health/ready");
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(body), {
      status: "degraded",
      checks: {
        good: "ok",
        rejects: "connection refused",
        throws: "bad address",
        wordless: "failed",
        endless: "x".repeat(300),
      },
    });
    assert.equal((await ask("/health/live")).body, '{"status":"ok"}\n');
  });

  test("hanging checks time out together after 500 ms, and do not hide the others", async (t) => {
    let told = false;
    const { clock, health, ask } = await serve(t, {
      good: async () => undefined,
      hangs: (signal) => {
        signal.addEventListener("abort", () => {
          told = true;
        });
        return never();
      },
      alsoHangs: never,
    });
    health.markStarted();
    const asked = ask("/health/ready");
    await eventually("the checks run", () => assert.equal(clock.timerCount, 2));
    await clock.advance(500);
    assert.deepEqual(JSON.parse((await asked).body).checks, {
      good: "ok",
      hangs: "no response within 500 ms",
      alsoHangs: "no response within 500 ms",
    });
    assert.equal(told, true);
    assert.equal(clock.timerCount, 0);
  });

  test("concurrent probes share one run of the checks, and a later probe starts its own", async (t) => {
    let runs = 0;
    let finish: () => void = () => assert.fail("no run yet");
    const { health, ask } = await serve(t, {
      counted: () => {
        runs++;
        return new Promise((resolve) => {
          finish = resolve;
        });
      },
    });
    health.markStarted();
    const handled = [ask("/health/ready"), ask("/health/ready"), ask("/health/ready")];
    // The liveness probe is handled after the three probes have arrived.
    await eventually("a run has begun", () => assert.equal(runs, 1));
    await ask("/health/live");
    finish();
    await Promise.all(handled);
    assert.equal(runs, 1);
    const later = ask("/health/ready");
    await eventually("another run has begun", () => assert.equal(runs, 2));
    finish();
    await later;
  });

  test("a probe reports a shutdown that begins while checks run", async (t) => {
    const { clock, health, ask } = await serve(t, { hangs: never });
    health.markStarted();
    const asked = ask("/health/ready");
    await eventually("the check runs", () => assert.equal(clock.timerCount, 1));
    health.markShuttingDown();
    await clock.advance(500);
    assert.equal((await asked).status, 503);
  });
});
