import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "kubernetes-types/core/v1.js";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import type { KubeApi } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import { replicaSets, services } from "../kube/resources.ts";
import { EventRecorder, type ObjectEvent } from "./object-events.ts";

const subject = { kind: replicaSets, ref: { namespace: "acme", name: "web" }, uid: "u-1" };
const repaired: ObjectEvent = { subject, type: "Warning", reason: "Repaired", message: "krane repaired it." };

function createRecorder(t: { after(clean: () => Promise<void>): void }, fail?: (attempt: number) => unknown) {
  const clock = new FakeClock();
  const written: Event[] = [];
  let attempts = 0;
  const create = async (_: unknown, object: Event) => {
    const error = fail?.(attempts++);
    if (error !== undefined) throw error;
    written.push(object);
    return object;
  };
  const api = { create } as unknown as Pick<KubeApi, "create">;
  let fullCount = 0;
  const onFull = () => void fullCount++;
  const recorder = new EventRecorder({ api, clock, random: createSeededRandom(1), onFull });
  const stopping = new AbortController();
  const running = recorder.run(stopping.signal);
  t.after(async () => {
    stopping.abort();
    await running;
  });
  return { clock, written, recorder, attempts: () => attempts, fullCount: () => fullCount };
}

test("every event is written once, under a name of its own", async (t) => {
  const { clock, written, recorder } = createRecorder(t);
  recorder.record(repaired);
  recorder.record({ ...repaired, reason: "Deleted" });
  recorder.record({ ...repaired, subject: { ...subject, kind: services } });
  await clock.advance(1);
  recorder.record(repaired);
  await clock.advance(1);
  assert.equal(written.length, 4);
  assert.equal(new Set(written.map(({ metadata }) => metadata.name)).size, 4);
  assert.deepEqual(written[0]?.involvedObject, {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    namespace: "acme",
    name: "web",
    uid: "u-1",
  });
  assert.equal(written[0]?.count, 1);
});

test("many events of one object become few that count them, and other objects do not wait", async (t) => {
  const { clock, written, recorder } = createRecorder(t);
  for (let round = 0; round < 1_000; round++) {
    recorder.record(repaired);
    await clock.advance(100);
  }
  recorder.record({ ...repaired, subject: { ...subject, ref: { namespace: "acme", name: "other" } } });
  await clock.advance(1);
  assert.equal(written.at(-1)?.involvedObject.name, "other");
  assert.equal(written.length, 5 + 1 + 1);
  await clock.advance(120_000);
  assert.equal(recorder.waitingCount, 0);
  assert.equal(
    written.reduce((sum, { count = 0 }) => sum + count, 0),
    1_001,
  );
  const counted = written.find(({ count = 0 }) => count > 1);
  assert.ok((counted?.firstTimestamp ?? "") < (counted?.lastTimestamp ?? ""));
});

test("a failure is retried, a refusal is not, and neither is retried for ever", async (t) => {
  const broken = new KubeApiError("network", "connection refused");
  const once = createRecorder(t, (attempt) => (attempt === 0 ? broken : undefined));
  once.recorder.record(repaired);
  await once.clock.advance(60_000);
  assert.equal(once.written.length, 1);

  const refused = new KubeApiError("refused", "403", { status: 403 });
  const forbidden = createRecorder(t, () => refused);
  forbidden.recorder.record(repaired);
  await forbidden.clock.advance(600_000);
  assert.deepEqual([forbidden.attempts(), forbidden.recorder.waitingCount], [1, 0]);

  const down = createRecorder(t, () => broken);
  down.recorder.record(repaired);
  await down.clock.advance(600_000);
  assert.deepEqual([down.attempts(), down.recorder.waitingCount], [5, 0]);
});

test("the number of waiting events is bounded, and that some are dropped is told once", async (t) => {
  const { recorder, fullCount } = createRecorder(t, () => new KubeApiError("network", "connection refused"));
  for (let index = 0; index < 12_000; index++)
    recorder.record({
      ...repaired,
      subject: { ...subject, ref: { namespace: "acme", name: `web-${index}` } },
    });
  assert.deepEqual([recorder.waitingCount, fullCount()], [10_000, 1]);
});
