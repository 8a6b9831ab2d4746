import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { KubeObject } from "../kube/types.ts";
import { findMovedItems } from "./apply-steps.ts";

const object = (spec: unknown): KubeObject & { readonly spec: unknown } => ({
  metadata: { name: "it" },
  spec,
});
const service = (ports: readonly unknown[]) => object({ ports });

describe("items that somebody gave another key", () => {
  test("are found by their name, and put back at their place", () => {
    const wanted = service([{ name: "http", port: 8040, protocol: "TCP" }]);
    const live = service([
      { name: "metrics", port: 9090 },
      { name: "http", port: 9999, protocol: "TCP", targetPort: 9999 },
    ]);
    assert.deepEqual(findMovedItems(wanted, live), [
      { op: "replace", path: "/spec/ports/1/port", value: 8040 },
    ]);
  });

  test("are found in lists within lists", () => {
    const pod = (containerPort: number) =>
      object({
        template: { spec: { containers: [{ name: "main", ports: [{ name: "web", containerPort }] }] } },
      });
    assert.deepEqual(findMovedItems(pod(8080), pod(9999)), [
      { op: "replace", path: "/spec/template/spec/containers/0/ports/0/containerPort", value: 8080 },
    ]);
  });

  test("without a name are found by their place, where nobody added any", () => {
    const keys = (...names: string[]) => object({ spread: names.map((topologyKey) => ({ topologyKey })) });
    assert.deepEqual(findMovedItems(keys("zone"), keys("host")), [
      { op: "replace", path: "/spec/spread/0/topologyKey", value: "zone" },
    ]);
    assert.deepEqual(findMovedItems(keys("zone"), keys("host", "zone")), []);
  });

  test("are none where an apply does it: outside of lists, and for what is missing", () => {
    const wanted = object({ replicas: 2, ports: [{ name: "http", port: 8040, protocol: "TCP" }] });
    assert.deepEqual(
      findMovedItems(wanted, object({ replicas: 5, ports: [{ name: "http", port: 8040 }] })),
      [],
    );
    assert.deepEqual(findMovedItems(wanted, object({ ports: [] })), []);
    assert.deepEqual(findMovedItems(wanted, {}), []);
  });

  test("have paths in which odd names stand as they must", () => {
    const labelled = (value: string) => object({ items: [{ name: "a", labels: { "x.io/b~c": value } }] });
    assert.deepEqual(findMovedItems(labelled("1"), labelled("2")), [
      { op: "replace", path: "/spec/items/0/labels/x.io~1b~0c", value: "1" },
    ]);
  });
});
