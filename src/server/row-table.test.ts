import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createSpec } from "./kind-messages.ts";
import { RowTable } from "./row-table.ts";
import type { Row } from "./store.ts";

function row(id: string, version: bigint): Row<"deployment"> {
  const spec = createSpec("deployment", { deploymentId: id, k8sName: `name-of-${id}` });
  return { id, spec, desired: "running", version };
}

const change = fc.record({
  id: fc.constantFrom("a", "b", "c", "d", "e"),
  action: fc.constantFrom("put", "put", "put", "delete", "put behind"),
  cursor: fc.bigInt(0n, 200n),
  limit: fc.integer({ min: 1, max: 7 }),
});

test("the rows after any cursor are those of a plain sorted list, whatever happened before", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 300 }), (changes) => {
      const table = new RowTable("deployment");
      const model = new Map<string, bigint>();
      let counter = 1_000n;
      let behind = 0n;
      for (const { id, action, cursor, limit } of changes) {
        if (action === "delete") {
          assert.equal(table.delete(id), model.delete(id));
        } else {
          const version = action === "put" ? ++counter : ++behind;
          table.put(row(id, version));
          model.set(id, version);
        }
        const from = action === "put" ? cursor + 1_000n : cursor;
        const expected = [...model]
          .map(([key, version]) => ({ key, version }))
          .filter(({ version }) => version > from)
          .sort((one, other) => (one.version < other.version ? -1 : 1))
          .slice(0, limit);
        assert.deepEqual(
          table.after(from, limit).map((each) => ({ key: each.id, version: each.version })),
          expected,
        );
        assert.equal(table.current().length, model.size);
      }
    }),
  );
});

test("a name leads to its row until the row is deleted", () => {
  const table = new RowTable("deployment");
  table.put(row("a", 1n));
  table.put(row("a", 2n));
  assert.equal(table.idOfName("name-of-a"), "a");
  assert.equal(table.get("a")?.version, 2n);
  table.delete("a");
  assert.equal(table.idOfName("name-of-a"), undefined);
});
