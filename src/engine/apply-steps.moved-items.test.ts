import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../kube/types.ts";
import { findMovedItems } from "./drift-repair.ts";

const object = (spec: unknown): KubeObject & { readonly spec: unknown } => ({
  metadata: { name: "it" },
  spec,
});
const service = (ports: readonly unknown[]) => object({ ports });

describe("list items whose key was edited", () => {
  test("are found by their name, and restored at their index", () => {
    const wanted = service([{ name: "http", port: 8040, protocol: "TCP" }]);
    const live = service([
      { name: "metrics", port: 9090 },
      { name: "http", port: 9999, protocol: "TCP", targetPort: 9999 },
    ]);
    assert.deepEqual(findMovedItems(wanted, live), [
      { op: "replace", path: "/spec/ports/1/port", value: 8040 },
    ]);
  });

  test("are found in nested lists", () => {
    const pod = (containerPort: number) =>
      object({
        template: { spec: { containers: [{ name: "main", ports: [{ name: "web", containerPort }] }] } },
      });
    assert.deepEqual(findMovedItems(pod(8080), pod(9999)), [
      { op: "replace", path: "/spec/template/spec/containers/0/ports/0/containerPort", value: 8080 },
    ]);
  });

  test("without a name are found by their index, if no item was added", () => {
    const keys = (...names: string[]) => object({ spread: names.map((topologyKey) => ({ topologyKey })) });
    assert.deepEqual(findMovedItems(keys("zone"), keys("host")), [
      { op: "replace", path: "/spec/spread/0/topologyKey", value: "zone" },
    ]);
    assert.deepEqual(findMovedItems(keys("zone"), keys("host", "zone")), []);
  });

  test("do not include what an apply repairs: fields outside of lists, and missing ones", () => {
    const wanted = object({ replicas: 2, ports: [{ name: "http", port: 8040, protocol: "TCP" }] });
    assert.deepEqual(
      findMovedItems(wanted, object({ replicas: 5, ports: [{ name: "http", port: 8040 }] })),
      [],
    );
    assert.deepEqual(findMovedItems(wanted, object({ ports: [] })), []);
    assert.deepEqual(findMovedItems(wanted, {}), []);
  });

  test("have paths with escaped names", () => {
    const labelled = (value: string) => object({ items: [{ name: "a", labels: { "x.io/b~c": value } }] });
    assert.deepEqual(findMovedItems(labelled("1"), labelled("2")), [
      { op: "replace", path: "/spec/items/0/labels/x.io~1b~0c", value: "1" },
    ]);
  });
});
