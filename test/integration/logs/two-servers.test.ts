// A reader on one server and the agent on the other, of one PostgreSQL.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createSystemRandom } from "../../../src/concurrency/random.ts";
import { type LogEnd_Reason, SendLogLinesRequestSchema } from "../../../src/gen/ctrl/v1/logs_pb.ts";
import { LineBuffer } from "../../../src/server/logs/line-buffer.ts";
import { LogBroker } from "../../../src/server/logs/log-broker.ts";
import { type PostgresStore, startPostgresStore } from "../../../src/server/postgres/postgres-store.ts";
import { embeddedTarget, type OpenTarget } from "../../store/store-target.ts";
import { eventually } from "../../support/eventually.ts";
import { createQuietLog } from "../../support/quiet-log.ts";

const deps = { clock: createSystemClock(), random: createSystemRandom(), log: createQuietLog() };
const region = "local.dev";
const never = new AbortController().signal;

let target: OpenTarget;
let other: { readonly store: PostgresStore; close(): Promise<void> };

before(async () => {
  const opened = await embeddedTarget.open();
  target = typeof opened === "string" ? assert.fail(opened) : opened;
  other = await startPostgresStore(target.database ?? assert.fail("it has no database"), deps);
});

after(async () => {
  await other.close();
  await target.close();
});

test("lines of any length reach a reader on another server in order, and it can leave", async () => {
  const readers = new LogBroker({ ...deps, channel: target.store.channel });
  const agents = new LogBroker({ ...deps, channel: other.store.channel });
  const requests = agents.requests(region, never);
  await requests.next();
  const buffer = new LineBuffer();
  const ends: unknown[] = [];
  const asked = { k8sNamespace: "acme", k8sName: "web", deploymentId: "d_web", follow: true };
  const close = readers.open({ region, buffer, onEnd: (end) => ends.push(end) }, asked);
  const { ticket } = (await requests.next()).value ?? assert.fail("it ended");
  const send = (before: number, texts: readonly string[], end?: LogEnd_Reason) =>
    agents.receive(
      region,
      create(SendLogLinesRequestSchema, {
        ...{ ticket, instanceId: "ins_1", linesBefore: BigInt(before) },
        entries: texts.map((text) => ({ podName: "web-1", text })),
        ...(end !== undefined && { end: { reason: end } }),
      }),
    );
  const reading = buffer.read(never);
  const count = 1_000;
  for (let n = 0; n < count; n += 50) {
    const texts = Array.from({ length: 50 }, (_, index) => `${n + index} ${"x".repeat(120)}`);
    assert.equal(await send(n, texts), true);
  }
  await send(count, ["y".repeat(16_384)]);
  for (let n = 0; n < count; n++) {
    const { value } = await reading.next();
    assert.equal(value?.entry?.text.split(" ")[0], String(n));
  }
  assert.equal((await reading.next()).value?.entry?.text.length, 16_384);
  close();
  await eventually("the agent is told to stop", async () => assert.equal(await send(count + 1, []), false));
  assert.deepEqual(ends, []);
});
