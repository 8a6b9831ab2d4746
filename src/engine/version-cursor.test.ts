import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { VersionCursor } from "./version-cursor.ts";

test("the cursor stays below a version that fails while later ones settle", () => {
  const cursor = new VersionCursor();
  for (let version = 10n; version <= 20n; version++) cursor.receive(version, `key-${version}`);
  for (let version = 11n; version <= 20n; version++) cursor.settle(`key-${version}`, version);
  assert.equal(cursor.version, 9n);
  cursor.settle("key-10", 10n);
  assert.equal(cursor.version, 20n);
});

test("settling a newer version of a key settles the older ones", () => {
  const cursor = new VersionCursor();
  cursor.receive(1n, "a");
  cursor.receive(2n, "a");
  cursor.receive(3n, "a");
  cursor.settle("a", 3n);
  assert.equal(cursor.version, 3n);
});

test("a settled version stays settled when a reconnect delivers it again", () => {
  const cursor = new VersionCursor();
  cursor.receive(5n, "a");
  cursor.settle("a", 5n);
  cursor.receive(5n, "a");
  assert.equal(cursor.version, 5n);
  assert.equal(cursor.unsettledCount, 0);
});

test("versions above 2^53 are exact", () => {
  const cursor = new VersionCursor();
  const base = 2n ** 53n;
  cursor.receive(base + 1n, "a");
  cursor.receive(base + 2n, "b");
  cursor.settle("a", base + 1n);
  assert.equal(cursor.version, base + 1n);
});

test("a replay from 0 keeps what is unsettled and climbs again", () => {
  const cursor = new VersionCursor();
  cursor.receive(4n, "a");
  cursor.receive(7n, "b");
  cursor.settle("b", 7n);
  cursor.rewind();
  assert.equal(cursor.version, 0n);
  cursor.receive(7n, "b");
  assert.equal(cursor.version, 3n);
  cursor.settle("a", 4n);
  assert.equal(cursor.version, 7n);
});

test("after a restart of the numbering, the cursor follows the new numbers", () => {
  const cursor = new VersionCursor();
  cursor.receive(1000n, "a");
  cursor.restart();
  cursor.receive(3n, "a");
  assert.equal(cursor.version, 2n);
  cursor.settle("a", 3n);
  assert.equal(cursor.version, 3n);
});

test("a version without an object moves the cursor, but never past an unsettled one", () => {
  const cursor = new VersionCursor();
  cursor.receive(3n, "a");
  cursor.pass(9n);
  assert.equal(cursor.version, 2n);
  cursor.settle("a", 3n);
  assert.equal(cursor.version, 9n);
});

test("a thousand versions of a failing key take the memory of one", () => {
  const cursor = new VersionCursor();
  for (let version = 1n; version <= 1000n; version++) cursor.receive(version, "a");
  assert.equal(cursor.unsettledCount, 1);
  assert.equal(cursor.version, 0n);
});

// The model keeps every single version; the cursor may be lower, but never above it, and is equal
// to it whenever all keys are settled.
test("the cursor is never above what a model of all versions allows, and reaches it", () => {
  const command = fc.oneof(
    fc.record({ kind: fc.constant("receive" as const), key: fc.integer({ min: 0, max: 6 }) }),
    fc.record({
      kind: fc.constant("settle" as const),
      key: fc.integer({ min: 0, max: 6 }),
      back: fc.nat(4),
    }),
    fc.record({ kind: fc.constant("again" as const), version: fc.nat(40) }),
  );
  fc.assert(
    fc.property(fc.array(command, { maxLength: 120 }), (commands) => {
      const cursor = new VersionCursor();
      const log: string[] = [];
      const pending = new Map<bigint, string>();
      const settled = new Map<string, bigint>();
      let before = 0n;
      const settle = (key: string, version: bigint) => {
        cursor.settle(key, version);
        if (version > (settled.get(key) ?? 0n)) settled.set(key, version);
        for (const [one, holder] of pending) if (holder === key && one <= version) pending.delete(one);
      };
      for (const one of commands) {
        if (one.kind === "receive") {
          const key = `k${one.key}`;
          log.push(key);
          cursor.receive(BigInt(log.length), key);
          pending.set(BigInt(log.length), key);
        } else if (one.kind === "again") {
          const key = log[one.version];
          const version = BigInt(one.version + 1);
          if (key === undefined) continue;
          cursor.receive(version, key);
          if (version > (settled.get(key) ?? 0n)) pending.set(version, key);
        } else {
          const key = `k${one.key}`;
          const newest = BigInt(log.lastIndexOf(key) + 1);
          if (newest > BigInt(one.back)) settle(key, newest - BigInt(one.back));
        }
        const lowest = [...pending.keys()].reduce((a, b) => (a < b ? a : b), BigInt(log.length) + 1n);
        assert.ok(cursor.version < lowest, `${cursor.version} is not below ${lowest}`);
        assert.ok(cursor.version >= before, "it went back");
        before = cursor.version;
      }
      for (let key = 0; key <= 6; key++) settle(`k${key}`, BigInt(log.length));
      assert.equal(cursor.version, BigInt(log.length));
    }),
  );
});

test("a failing version is listed as an exception, and holds no other back", () => {
  const cursor = new VersionCursor();
  for (let version = 1n; version <= 5n; version++) cursor.receive(version, `key-${version}`);
  for (let version = 2n; version <= 5n; version++) cursor.settle(`key-${version}`, version);
  assert.deepEqual(cursor.settled, { upTo: 5n, except: [1n] });
  cursor.receive(6n, "key-1");
  assert.deepEqual(cursor.settled, { upTo: 6n, except: [6n] });
  cursor.rewind();
  assert.deepEqual(cursor.settled, { upTo: 6n, except: [6n] });
  cursor.settle("key-1", 6n);
  assert.deepEqual(cursor.settled, { upTo: 6n, except: [] });
  cursor.restart();
  assert.deepEqual(cursor.settled, { upTo: 0n, except: [] });
});

test("with very many unsettled versions none is listed, and only the cursor counts", () => {
  const cursor = new VersionCursor();
  for (let version = 1n; version <= 200n; version++) cursor.receive(version, `key-${version}`);
  cursor.settle("key-1", 1n);
  assert.deepEqual(cursor.settled, { upTo: 1n, except: [] });
});
