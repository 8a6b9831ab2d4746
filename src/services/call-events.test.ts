import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createKeptLog } from "../../test/support/kept-log.ts";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../gen/grpc/health/v1/health_pb.ts";
import { loggedRouter } from "./call-events.ts";

/** A service whose calls take as long, and end, as a test says. */
function createService(rate: number) {
  const clock = new FakeClock();
  const kept = createKeptLog({ rate, slowThresholdMs: 1_000 });
  const next: { takesMs: number; fails: ConnectError | undefined } = { takesMs: 0, fails: undefined };
  const handle = async () => {
    await clock.advance(next.takesMs);
    if (next.fails) throw next.fails;
    return { status: Status.SERVING };
  };
  const transport = createRouterTransport((router) =>
    loggedRouter(router, { clock, log: kept.log }).service(Health, {
      check: handle,
      async *watch() {
        yield { status: Status.SERVING };
        yield await handle();
      },
    }),
  );
  return { client: createClient(Health, transport), kept, next };
}

const facts = ({ level, method, code, durationMs, error }: Readonly<Record<string, unknown>>) => [
  level,
  method,
  code,
  durationMs,
  (error as { readonly message: string } | undefined)?.message,
];

test("every call is one event at a rate of 1", async () => {
  const { client, kept, next } = createService(1);
  await client.check({});
  next.takesMs = 30;
  for await (const _ of client.watch({}));
  next.fails = new ConnectError("no such name", Code.NotFound);
  await assert.rejects(client.check({}));
  assert.deepEqual(kept.of("request").map(facts), [
    ["info", "Check", "ok", 0, undefined],
    ["info", "Watch", "ok", 30, undefined],
    ["info", "Check", "not_found", 30, undefined],
  ]);
  assert.equal(kept.of("request")[0]?.["path"], "/grpc.health.v1.Health/Check");
});

test("at a rate of 0, what failed or was slow is still logged, and nothing else", async () => {
  const { client, kept, next } = createService(0);
  await client.check({});
  next.takesMs = 1_001;
  await client.check({});
  next.takesMs = 5;
  next.fails = new ConnectError("rejected", Code.InvalidArgument);
  await assert.rejects(client.check({}));
  next.fails = new ConnectError("the database is down", Code.Unavailable);
  await assert.rejects(client.check({}));
  await assert.rejects(async () => {
    for await (const _ of client.watch({}));
  });
  const down = "[unavailable] the database is down";
  assert.deepEqual(kept.of("request").map(facts), [
    ["info", "Check", "ok", 1_001, undefined],
    ["error", "Check", "unavailable", 5, down],
    ["error", "Watch", "unavailable", 5, down],
  ]);
});
