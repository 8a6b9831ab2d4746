import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../../test/support/fake-clock.ts";
import type { DesiredMessage } from "./desired-message.ts";
import { DesiredStore } from "./desired-store.ts";

type Message = DesiredMessage<string>;

function apply(key: string, version: bigint, spec: string): Message {
  return { key, id: `id-${key}`, version, want: { kind: "apply", spec } };
}

function remove(key: string, version: bigint): Message {
  return { key, id: undefined, version, want: { kind: "delete" } };
}

function invalid(key: string, version: bigint): Message {
  return { key, id: `id-${key}`, version, want: { kind: "invalid", problems: [] } };
}

function specOf(store: DesiredStore<string>, key: string): string | undefined {
  const want = store.get(key)?.want;
  return want?.kind === "apply" ? want.spec : want?.kind;
}

test("the highest version wins, in any order of arrival", () => {
  const store = new DesiredStore<string>(new FakeClock());
  assert.equal(store.receive(apply("a", 5n, "five")), "changed");
  assert.equal(store.receive(apply("a", 3n, "three")), "stale");
  assert.equal(store.receive(apply("a", 5n, "five")), "unchanged");
  assert.equal(specOf(store, "a"), "five");
});

test("a delete keeps the id that only the apply carried", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 1n, "one"));
  store.receive(remove("a", 2n));
  assert.equal(store.get("a")?.id, "id-a");
});

test("a response is dropped if the stream changed the key after the request", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 1n, "one"));
  const question = store.ask("a");
  store.receive(apply("a", 2n, "two"));
  assert.equal(store.answer(question, apply("a", 9n, "late")), "stale");
  assert.equal(specOf(store, "a"), "two");
});

test("a stale response cannot bring back what the stream has deleted", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 1n, "one"));
  const question = store.ask("a");
  store.receive(remove("a", 2n));
  assert.equal(store.answer(question, apply("a", 1n, "one")), "stale");
  const second = store.ask("a");
  assert.equal(store.answer(second, apply("a", 0n, "one")), "stale");
  assert.equal(specOf(store, "a"), "delete");
});

test("a response is dropped if the stream brought the key while the request was in flight", () => {
  const store = new DesiredStore<string>(new FakeClock());
  const question = store.ask("a");
  store.receive(apply("a", 2n, "two"));
  assert.equal(store.answer(question, apply("a", 1n, "one")), "stale");
});

test("responses without a version are compared by content and keep the known version", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 7n, "seven"));
  assert.equal(store.answer(store.ask("a"), apply("a", 0n, "seven")), "unchanged");
  assert.equal(store.answer(store.ask("a"), apply("a", 0n, "other")), "changed");
  assert.equal(store.get("a")?.version, 7n);
  assert.equal(specOf(store, "a"), "other");
});

test("a lower version in a response is accepted only after it is repeated", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 100n, "new"));
  assert.equal(store.answer(store.ask("a"), apply("a", 4n, "restored")), "stale");
  assert.equal(store.answer(store.ask("a"), apply("a", 100n, "new")), "unchanged");
  assert.equal(store.answer(store.ask("a"), apply("a", 4n, "restored")), "stale");
  assert.equal(store.answer(store.ask("a"), apply("a", 4n, "restored")), "stale");
  assert.equal(store.answer(store.ask("a"), apply("a", 4n, "restored")), "changed");
  assert.equal(specOf(store, "a"), "restored");
});

test("an equal version with different content is accepted: the control plane reused the number", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 1n, "one"));
  assert.equal(store.receive(apply("a", 1n, "other")), "changed");
});

test("an order survives a replay of what it replaced, and yields to a newer version", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 1n, "one"));
  store.order(apply("a", 0n, "ordered"));
  assert.equal(store.receive(apply("a", 1n, "one")), "unchanged");
  assert.equal(specOf(store, "a"), "ordered");
  assert.equal(store.receive(apply("a", 2n, "two")), "changed");
});

test("an order survives responses with what it replaced, and yields to repeated lower versions", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.restore(apply("a", 50n, "ordered"));
  assert.equal(store.answer(store.ask("a"), apply("a", 50n, "replaced")), "unchanged");
  assert.equal(store.answer(store.ask("a"), apply("a", 0n, "replaced")), "unchanged");
  assert.equal(specOf(store, "a"), "ordered");
  assert.equal(store.answer(store.ask("a"), apply("a", 4n, "restored")), "stale");
  assert.equal(store.answer(store.ask("a"), apply("a", 4n, "restored")), "stale");
  assert.equal(store.answer(store.ask("a"), apply("a", 4n, "restored")), "changed");
  assert.equal(specOf(store, "a"), "restored");
});

test("an entry has its spec as the last valid one, wherever it came from", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("streamed", 1n, "one"));
  store.answer(store.ask("answered"), apply("answered", 1n, "two"));
  store.order(apply("ordered", 0n, "three"));
  store.restore(apply("restored", 0n, "four"));
  const lastValid = (key: string) => store.get(key)?.lastValid;
  const keys = ["streamed", "answered", "ordered", "restored"];
  assert.deepEqual(keys.map(lastValid), ["one", "two", "three", "four"]);
  assert.equal(store.get("restored")?.origin, "scheduler");
});

test("a restored order stays in place while the control plane repeats what it replaced", () => {
  const named: Record<string, (store: DesiredStore<string>, message: Message) => void> = {
    "by the stream": (store, message) => void store.receive(message),
    "by an answer": (store, message) => void store.answer(store.ask("a"), message),
  };
  for (const [how, name] of Object.entries(named)) {
    const store = new DesiredStore<string>(new FakeClock(), ({ want }) => want.kind);
    store.restore(apply("a", 50n, "ordered"));
    name(store, remove("a", 50n));
    name(store, invalid("a", 50n));
    name(store, apply("a", 50n, "replaced"));
    assert.deepEqual([store.get("a")?.lastValid, specOf(store, "a")], ["ordered", "ordered"], how);
    assert.deepEqual(store.ofGroup("apply"), [store.get("a")], how);
    name(store, apply("a", 51n, "newer"));
    assert.deepEqual([store.get("a")?.lastValid, specOf(store, "a")], ["newer", "newer"], how);
  }
});

test("an invalid message keeps the last valid spec of the same id", () => {
  const store = new DesiredStore<string>(new FakeClock());
  const lastValid = () => store.get("a")?.lastValid;
  store.receive(invalid("a", 1n));
  assert.equal(lastValid(), undefined, "no spec was valid before");
  store.receive(apply("a", 2n, "two"));
  store.receive(invalid("a", 3n));
  store.receive(invalid("a", 4n));
  assert.deepEqual([specOf(store, "a"), lastValid()], ["invalid", "two"]);
  store.forgetVersions();
  assert.equal(lastValid(), "two");
  store.receive({ ...invalid("a", 5n), id: "another" });
  assert.equal(lastValid(), undefined, "the last spec had another id");
  store.receive(apply("a", 6n, "six"));
  store.receive(remove("a", 7n));
  assert.equal(lastValid(), undefined, "it is being deleted");
  store.receive(invalid("a", 8n));
  assert.equal(lastValid(), undefined, "a deletion ends it");
});

test("tombstones expire after an hour, but not while the object lives or the server still sends them", async () => {
  const clock = new FakeClock();
  const store = new DesiredStore<string>(clock);
  for (const key of ["gone", "alive", "heard"]) store.receive(remove(key, 1n));
  store.receive(apply("wanted", 2n, "two"));
  await clock.advance(3_000_000);
  store.receive(remove("heard", 1n));
  await clock.advance(1_000_000);
  assert.deepEqual(
    store.sweep((key) => key === "alive"),
    ["gone"],
  );
  assert.deepEqual([...store.entries()].map(({ key }) => key).sort(), ["alive", "heard", "wanted"]);
});

/** A store that knows the Delete of "a" as version 10. */
function afterDelete(): DesiredStore<string> {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 1n, "one"));
  store.receive(remove("a", 10n));
  store.opened();
  return store;
}

test("a Delete of a lost future yields to a response and a stream that both contradict it, in any order", () => {
  for (const answersFirst of [true, false]) {
    const store = afterDelete();
    const answer = () => store.answer(store.ask("a"), apply("a", 1n, "one"));
    if (answersFirst) assert.equal(answer(), "stale");
    assert.equal(store.receive(apply("a", 1n, "one")), "stale");
    assert.deepEqual(store.reached(1n), []);
    assert.deepEqual(store.reached(10n), []);
    assert.equal(store.get("a")?.want.kind, "delete");
    assert.deepEqual(store.reached(11n), answersFirst ? ["a"] : []);
    if (!answersFirst) assert.equal(answer(), "changed");
    assert.deepEqual([specOf(store, "a"), store.get("a")?.version], ["one", 1n]);
    assert.deepEqual(store.reached(12n), []);
  }
});

test("a Delete stays if the stream repeats it, or if a new stream says nothing of it", () => {
  const store = afterDelete();
  const answer = () => store.answer(store.ask("a"), apply("a", 1n, "one"));
  store.receive(apply("a", 1n, "one"));
  store.opened();
  assert.deepEqual(store.reached(11n), [], "the older state came from another connection");
  for (let pass = 0; pass < 5; pass++)
    assert.equal(answer(), "stale", "no stream has contradicted the Delete");
  assert.equal(store.contradictions("a"), 5);
  store.receive(remove("a", 10n));
  assert.equal(store.contradictions("a"), 0);
  store.receive(apply("a", 1n, "one"));
  assert.deepEqual(store.reached(11n), [], "a late message");
  for (let pass = 0; pass < 5; pass++) assert.equal(answer(), "stale");

  // After that the control plane is restored: the next stream has another history.
  store.opened();
  assert.equal(answer(), "stale");
  assert.equal(store.contradictions("a"), 1);
  store.opened();
  store.receive(apply("a", 1n, "one"));
  assert.deepEqual(store.reached(11n), ["a"]);
});

test("a Delete yields after three passes if stream and responses contradict it, and no higher version exists", () => {
  const store = afterDelete();
  store.receive(apply("a", 1n, "one"));
  const answer = () => store.answer(store.ask("a"), apply("a", 1n, "one"));
  assert.deepEqual([answer(), answer(), answer()], ["stale", "stale", "changed"]);
});

test("a Delete that a call ordered does not yield to what it replaced, and any Delete does to a higher version", () => {
  const store = afterDelete();
  store.order(remove("a", 0n));
  store.receive(apply("a", 1n, "one"));
  store.reached(11n);
  for (let pass = 0; pass < 5; pass++)
    for (const version of [1n, 10n])
      assert.equal(store.answer(store.ask("a"), apply("a", version, "one")), "stale");
  const other = afterDelete();
  assert.equal(other.answer(other.ask("a"), apply("a", 11n, "eleven")), "changed");
});

test("groups follow changes of their entries", () => {
  const store = new DesiredStore<string>(new FakeClock(), ({ want }) =>
    want.kind === "apply" ? want.spec : undefined,
  );
  store.receive(apply("a", 1n, "blue"));
  store.receive(apply("b", 2n, "blue"));
  store.receive(apply("a", 3n, "red"));
  assert.deepEqual(
    store.ofGroup("blue").map(({ key }) => key),
    ["b"],
  );
  store.forgetVersions();
  store.remove("b");
  assert.deepEqual(store.ofGroup("blue"), []);
  assert.deepEqual(
    store.ofGroup("red").map(({ version }) => version),
    [0n],
  );
});

test("entries are found by their name in any namespace", () => {
  const store = new DesiredStore<string>(new FakeClock());
  const named = (name: string) => store.ofName(name).map(({ key, want }) => [key, want.kind]);
  store.receive(apply("acme/web", 1n, "one"));
  store.receive(apply("globex/web", 2n, "two"));
  store.receive(apply("acme/api-web", 3n, "three"));
  store.receive(remove("globex/web", 4n));
  store.forgetVersions();
  assert.deepEqual(named("web").sort(), [
    ["acme/web", "apply"],
    ["globex/web", "delete"],
  ]);
  store.remove("acme/web");
  assert.deepEqual(named("web"), [["globex/web", "delete"]]);
});

// However messages are shuffled or repeated, and however late a response comes, a key ends with the newest state that
// the stream brought.
test("no order of messages and late responses makes a key go back", () => {
  const event = fc.record({
    key: fc.constantFrom("a", "b"),
    version: fc.bigInt(1n, 30n),
    isDelete: fc.boolean(),
    asks: fc.boolean(),
    answersIn: fc.nat(5),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 60 }), (events) => {
      const store = new DesiredStore<string>(new FakeClock());
      const messages = new Map<string, Message>();
      const newest = new Map<string, Message>();
      const late = new Map<number, () => void>();
      for (const [index, { key, version, isDelete, asks, answersIn }] of events.entries()) {
        // Each version has one content, as with a real control plane.
        const name = `${key}${version}`;
        const message = messages.get(name) ?? (isDelete ? remove(key, version) : apply(key, version, name));
        messages.set(name, message);
        const known = newest.get(key);
        if (asks && known !== undefined) {
          const question = store.ask(key);
          late.set(index + answersIn, () => void store.answer(question, known));
        }
        store.receive(message);
        if (known === undefined || version > known.version) newest.set(key, message);
        late.get(index)?.();
        for (const [one, { want }] of newest) assert.deepEqual(store.get(one)?.want, want);
      }
    }),
  );
});

test("a fingerprint is known as long as the last response matches the entry", () => {
  const store = new DesiredStore<string>(new FakeClock());
  const answer = (version: bigint, spec: string, fingerprint?: string) =>
    store.answer(store.ask("a"), apply("a", version, spec), fingerprint);
  const known = () => store.ask("a").knownFingerprint;
  assert.equal(answer(5n, "five", "fingerprint of five"), "changed");
  assert.equal(known(), "fingerprint of five");
  store.receive(apply("a", 5n, "five"));
  assert.equal(known(), "fingerprint of five", "the stream sent the same content");

  store.receive(apply("a", 6n, "six"));
  assert.equal(known(), undefined, "the stream sent a newer version");
  assert.equal(answer(6n, "six", "fingerprint of six"), "unchanged");
  assert.equal(known(), "fingerprint of six");
  store.receive(apply("a", 6n, "other"));
  assert.equal(known(), undefined, "the stream sent other content with the same version");

  assert.equal(answer(6n, "other", "fingerprint of other"), "unchanged");
  assert.equal(answer(4n, "lagging", "fingerprint of a lagging answer"), "stale");
  assert.equal(known(), undefined, "the last response was a different one");
  assert.equal(answer(6n, "other", "fingerprint of other"), "unchanged");
  store.forgetVersions();
  assert.equal(known(), undefined, "the versions were forgotten");
  assert.equal(answer(6n, "other", "fingerprint of other"), "changed");
  store.order(apply("a", 0n, "ordered"));
  assert.equal(known(), undefined, "an order has replaced it");
  assert.equal(answer(6n, "other"), "unchanged");
  assert.equal(known(), undefined, "the response came without one");
});

test("a response that names another object leaves no fingerprint", () => {
  const store = new DesiredStore<string>(new FakeClock());
  store.receive(apply("a", 1n, "one"));
  assert.equal(store.answer(store.ask("a"), apply("b", 2n, "two"), "fingerprint"), "changed");
  assert.deepEqual(
    [store.ask("a").knownFingerprint, store.ask("b").knownFingerprint],
    [undefined, undefined],
  );
});
