import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseRoute, type Route, urlOf } from "./route.ts";

const at = (url: string) => parseRoute(new URL(url, "http://krane.example"));

test("every view has a URL that leads back to it, whatever names it contains", () => {
  const name = fc.string({ minLength: 1, unit: "grapheme" }).filter((text) => text !== "." && text !== "..");
  const filter = fc.record({ text: fc.string(), kind: fc.string(), troubledOnly: fc.boolean() });
  const route: fc.Arbitrary<Exclude<Route, { view: "unknown" }>> = fc.oneof(
    fc.constantFrom({ view: "fleet" } as const, { view: "held" } as const),
    fc.record({ view: fc.constant("region" as const), region: name, filter }),
    fc.record({ view: fc.constant("object" as const), region: name, kind: name, id: name }),
  );
  fc.assert(fc.property(route, (one) => assert.deepEqual(at(urlOf(one)), structuredClone(one))));
});

test("other paths are unknown", () => {
  for (const path of [
    "/dashboard/regions",
    "/dashboard/x",
    "/dashboard/held/x",
    "/dashboard/regions/a/b",
    "/dashboard/regions/a/b/c/d",
    "/dashboard/regions/%ff",
    "/elsewhere",
  ])
    assert.equal(at(path).view, "unknown", path);
});
