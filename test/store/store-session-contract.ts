// What every store does for the dashboard: sessions that hold on every server, and marks of what changed.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { type StoredSession, sessionsPerNameMax } from "../../src/server/sessions.ts";
import { deployment, type Holds, stateAt } from "./store-fixtures.ts";

const atMs = 1_700_000_000_000;
const author = { by: "ann", atMs };

function session(more: Partial<StoredSession> = {}): StoredSession {
  const [id, name] = [randomUUID(), randomUUID()];
  return { id, name, binding: "b", createdAtMs: atMs, expiresAtMs: atMs + 1_000, ...more };
}

export function defineSessionContract(holds: Holds): void {
  holds(
    "a session that is made through one server is found and ended through another",
    async ({ store, other }) => {
      const made = session();
      await store.sessions.add(made);
      assert.deepEqual(await other.sessions.find(made.id), made);
      assert.equal(await other.sessions.end({ id: made.id }), 1);
      assert.equal(await store.sessions.find(made.id), undefined);
      assert.equal(await store.sessions.end({ id: made.id }), 0);
    },
  );

  holds("the sessions of one name end together, and those of others stay", async ({ store }) => {
    const [one, two, others] = [session({ name: "n" }), session({ name: "n" }), session()];
    for (const each of [one, two, others]) await store.sessions.add(each);
    assert.equal(await store.sessions.end({ name: "n" }), 2);
    assert.deepEqual(await store.sessions.find(others.id), others);
  });

  holds("expired sessions are forgotten, and the oldest beyond the limit of a name", async ({ store }) => {
    const name = randomUUID();
    const old = session({ expiresAtMs: atMs - 1 });
    await store.sessions.add({ ...old, createdAtMs: atMs - 2 });
    const all = Array.from({ length: sessionsPerNameMax + 1 }, () => session({ name }));
    for (const each of all) await store.sessions.add(each);
    assert.equal(await store.sessions.find(old.id), undefined);
    const found = await Promise.all(all.map(({ id }) => store.sessions.find(id)));
    assert.deepEqual(
      found.map((each) => each !== undefined),
      all.map((_, index) => index > 0),
    );
  });

  holds("a session keeps its groups, and none is not the same as an empty list", async ({ store, other }) => {
    for (const groups of [["sre", 'a "quoted", {group}', "é"], []]) {
      const made = session({ groups });
      await store.sessions.add(made);
      assert.deepEqual(await other.sessions.find(made.id), made);
    }
  });

  holds("a sign-in is taken once, through whichever server", async ({ store, other }) => {
    const begun = { id: randomUUID(), returnTo: "/dashboard/held?q=%20", expiresAtMs: atMs + 1_000 };
    await store.sessions.beginSignIn(begun, atMs);
    const taken = await Promise.all(
      [store, other, store].map(({ sessions }) => sessions.takeSignIn(begun.id)),
    );
    assert.deepEqual(
      taken.filter((each) => each !== undefined),
      [begun],
    );
    const old = { ...begun, id: randomUUID() };
    await store.sessions.beginSignIn(old, atMs);
    await other.sessions.beginSignIn({ ...begun, id: randomUUID(), expiresAtMs: atMs + 9_000 }, atMs + 1_000);
    assert.equal(await store.sessions.takeSignIn(old.id), undefined);
  });

  holds(
    "a mark moves with every event, heartbeat and report of its region",
    async ({ store, other, region }) => {
      const mark = async () => (await other.marks()).find((each) => each.region === region);
      assert.deepEqual(await mark(), { region, newestEntry: 0n, heartbeatAtMs: 0, stateAtMs: 0 });
      await store.put(region, "deployment", deployment("a"), author);
      await store.reportHeartbeat(region, atMs);
      await store.reportAgent(region, stateAt(atMs + 5));
      assert.deepEqual(await mark(), { region, newestEntry: 1n, heartbeatAtMs: atMs, stateAtMs: atMs + 5 });
    },
  );
}
