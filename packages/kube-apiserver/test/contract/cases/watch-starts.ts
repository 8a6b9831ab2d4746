// Watch: how it begins, how it says where it is, and how it ends.
import assert from "node:assert/strict";
import { type ContractCase, contractCase } from "../contract-case.ts";
import { defineKind } from "../custom-kind.ts";
import { eventually } from "../eventually.ts";
import { secret, secrets } from "../fixtures.ts";
import { at } from "../manifest.ts";
import { isRefusal, refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";
import { describeEvent, objectOf } from "../watcher.ts";

async function createTwo(trial: Trial): Promise<string> {
  await trial.create(secrets, secret("a"));
  await trial.create(secrets, secret("b"));
  return (await trial.list(secrets)).resourceVersion;
}

/** 410 in one of its two forms: the answer itself, or the first event. */
async function expired(attempt: Promise<unknown>): Promise<void> {
  const error = await attempt.then(
    () => assert.fail("the watch goes on"),
    (reason: unknown) => reason,
  );
  assert.ok(isRefusal(error), String(error));
  assert.equal(error.status, 410, error.message);
  assert.equal(error.reason, "Expired");
  assert.match(error.message, /too old resource version: \d+ \(\d+\)|required revision has been compacted/);
}

function alone(one: ContractCase): ContractCase {
  return { ...one, alone: true };
}

export const watchStartCases = [
  contractCase("watch: without a version it begins with what is there", async (trial) => {
    await createTwo(trial);
    const watch = trial.watch(secrets);
    const initial = (await watch.take(2)).map(describeEvent).sort();
    assert.deepEqual(initial, ["ADDED a", "ADDED b"]);
    await trial.delete(secrets, "a");
    assert.equal(describeEvent(await watch.next()), "DELETED a");
  }),
  contractCase("watch: version 0 begins with some state and goes on from there", async (trial) => {
    await createTwo(trial);
    const watch = trial.watch(secrets, { resourceVersion: "0" });
    await trial.create(secrets, secret("c"));
    const seen = (await watch.until((event) => describeEvent(event) === "ADDED c")).map(describeEvent);
    assert.deepEqual(seen.sort(), ["ADDED a", "ADDED b", "ADDED c"]);
  }),
  contractCase("watch: the initial state obeys the selectors", async (trial) => {
    await trial.create(secrets, secret("a", {}, { labels: { in: "yes" } }));
    await trial.create(secrets, secret("b"));
    const watch = trial.watch(secrets, { labelSelector: "in=yes" });
    await trial.create(secrets, secret("c", {}, { labels: { in: "yes" } }));
    assert.deepEqual((await watch.take(2)).map(describeEvent), ["ADDED a", "ADDED c"]);
  }),
  contractCase("watch: the initial events of sendInitialEvents end with a marked bookmark", async (trial) => {
    const version = await createTwo(trial);
    const watch = trial.watch(secrets, { sendInitialEvents: true });
    const seen = await watch.take(3);
    assert.deepEqual(seen.map(describeEvent), ["ADDED a", "ADDED b", "BOOKMARK"]);
    const mark = seen[2];
    assert.ok(mark?.type === "BOOKMARK" && mark.initialEventsEnd);
    assert.ok(BigInt(mark.resourceVersion) >= BigInt(version));
  }),
  contractCase("watch: sendInitialEvents of nothing is only the bookmark", async (trial) => {
    const watch = trial.watch(secrets, { sendInitialEvents: true });
    const event = await watch.next();
    assert.ok(event.type === "BOOKMARK" && event.initialEventsEnd);
    await trial.create(secrets, secret("a"));
    // A real server sends further bookmarks from time to time.
    let next = await watch.next();
    while (next.type === "BOOKMARK") next = await watch.next();
    assert.equal(describeEvent(next), "ADDED a");
  }),
  contractCase("watch: the bookmark is a place to resume from", async (trial) => {
    await createTwo(trial);
    const first = trial.watch(secrets, { sendInitialEvents: true });
    const mark = (await first.take(3))[2];
    first.close();
    await trial.create(secrets, secret("c"));
    assert.ok(mark?.type === "BOOKMARK");
    const second = trial.watch(secrets, { resourceVersion: mark.resourceVersion });
    assert.equal(describeEvent(await second.next()), "ADDED c");
  }),
  contractCase(
    "watch: sendInitialEvents works for metadata too, and its bookmark is marked",
    async (trial) => {
      await createTwo(trial);
      const watch = trial.watch(secrets, { sendInitialEvents: true, detail: "metadata" });
      const seen = await watch.take(3);
      assert.equal(objectOf(seen[0]).kind, "PartialObjectMetadata");
      assert.ok(seen[2]?.type === "BOOKMARK" && seen[2].initialEventsEnd);
    },
  ),
  contractCase("watch: a bookmark is an empty object of the kind with a version", async (trial) => {
    const stream = await trial.target.transport.stream(
      {
        method: "GET",
        path: trial.path(secrets),
        query: {
          watch: "true",
          allowWatchBookmarks: "true",
          sendInitialEvents: "true",
          resourceVersionMatch: "NotOlderThan",
        },
      },
      trial.signal,
    );
    for await (const value of stream.values) {
      assert.equal(at(value, "type"), "BOOKMARK");
      const { resourceVersion, ...metadata } = at(value, "object.metadata") as { resourceVersion: string };
      assert.match(resourceVersion, /^[1-9]\d*$/);
      assert.deepEqual(metadata, { annotations: { "k8s.io/initial-events-end": "true" } });
      assert.equal(at(value, "object.kind"), "Secret");
      break;
    }
  }),
  contractCase("watch: sendInitialEvents without a match is refused", async (trial) => {
    const query = { watch: "true", sendInitialEvents: "true", allowWatchBookmarks: "true" };
    await refused(trial.answer({ method: "GET", path: trial.path(secrets), query }), {
      status: 422,
      reason: "Invalid",
      causes: ["FieldValueForbidden resourceVersionMatch"],
    });
  }),
  contractCase("watch: a match without sendInitialEvents is refused", async (trial) => {
    const query = { watch: "true", resourceVersionMatch: "NotOlderThan", resourceVersion: "1" };
    await refused(trial.answer({ method: "GET", path: trial.path(secrets), query }), {
      status: 422,
      reason: "Invalid",
      causes: ["FieldValueForbidden resourceVersionMatch"],
    });
  }),
  contractCase("watch: timeoutSeconds ends it plainly", async (trial) => {
    const version = await createTwo(trial);
    const watch = trial.watch(secrets, { resourceVersion: version, timeoutSeconds: 1 });
    await watch.ended;
  }),
  contractCase("watch: with bookmarks, one comes before the timeout ends it", async (trial) => {
    const version = await createTwo(trial);
    const watch = trial.watch(secrets, { resourceVersion: version, timeoutSeconds: 4, bookmarks: true });
    const event = await watch.next();
    assert.ok(event.type === "BOOKMARK" && !event.initialEventsEnd);
    assert.ok(BigInt(event.resourceVersion) >= BigInt(version));
    await watch.ended;
  }),
  contractCase("watch: without bookmarks asked for, none come", async (trial) => {
    const version = await createTwo(trial);
    const watch = trial.watch(secrets, { resourceVersion: version, timeoutSeconds: 4 });
    await watch.ended;
    await assert.rejects(watch.next(), /the watch ended; seen: $/);
  }),
  contractCase("watch: a version that is no number is refused", async (trial) => {
    const watch = trial.watch(secrets, { resourceVersion: "nonsense" });
    await refused(watch.ended, { status: 500, reason: "", message: /resourceVersion: Invalid value/ });
  }),
  contractCase("watch: a selector that cannot be read is refused", async (trial) => {
    await refused(trial.watch(secrets, { labelSelector: "a=b=c" }).ended, {
      status: 400,
      reason: "BadRequest",
    });
    await refused(trial.watch(secrets, { fieldSelector: "data.key=value" }).ended, {
      status: 400,
      reason: "BadRequest",
    });
  }),
  contractCase("watch: a version from before a server's memory is answered with 410", async (trial) => {
    // The memory of a new kind is short for certain.
    const kind = await defineKind(trial);
    await expired(trial.watch(kind, { resourceVersion: "1" }).ended);
  }),
  contractCase("watch: a version from the future is waited for until the watch times out", async (trial) => {
    const watch = trial.watch(secrets, { resourceVersion: "99999999999", timeoutSeconds: 2 });
    await watch.ended;
  }),
  contractCase("watch: aborting it ends it", async (trial) => {
    const stop = new AbortController();
    const events = trial.api.watch(secrets, { namespace: trial.namespace }, stop.signal);
    await trial.create(secrets, secret("a"));
    const reading = (async () => {
      for await (const _ of events) stop.abort(new Error("enough"));
    })();
    await assert.rejects(reading, /enough/);
  }),
  alone(
    contractCase(
      "history: what was compacted away is answered with 410, and lists can go on",
      async (trial) => {
        const version = await createTwo(trial);
        const page = await trial.list(secrets, { limit: 1 });
        await trial.delete(secrets, "a");
        await trial.target.compactHistory();
        const exact = { resourceVersion: version, resourceVersionMatch: "Exact" } as const;
        await eventually("the server has noticed", () => {
          return refused(trial.list(secrets, exact), { status: 410, reason: "Expired" });
        });
        const { status, body } = await trial.send({
          method: "GET",
          path: trial.path(secrets),
          query: { limit: "1", continue: page.continue ?? "" },
        });
        assert.equal(status, 410);
        assert.match(String(at(body, "message")), /^The provided continue parameter is too old/);
        const rest = await trial.list(secrets, { limit: 9, continue: String(at(body, "metadata.continue")) });
        assert.deepEqual(
          rest.items.map((item) => item.metadata?.name),
          ["b"],
        );
      },
    ),
  ),
];
