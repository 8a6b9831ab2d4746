import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import type { KubeObject } from "../types.ts";
import { LiveObjects } from "./live-objects.ts";

const createObject = (name: string, version: number, uid = `uid-${name}`, owner?: string): KubeObject => ({
  metadata: {
    name,
    namespace: "work",
    uid,
    resourceVersion: String(version),
    ...(owner === undefined
      ? {}
      : { ownerReferences: [{ apiVersion: "v1", kind: "X", name: "o", uid: owner }] }),
  },
});

describe("live objects", () => {
  it("never go back to an older state", () => {
    const objects = new LiveObjects();
    objects.observe(createObject("a", 5));
    objects.observe(createObject("a", 3));
    assert.equal(objects.get("work/a")?.metadata?.resourceVersion, "5");
  });

  it("report an object that was replaced by another with the same name as deleted and added", () => {
    const objects = new LiveObjects();
    const seen: string[] = [];
    objects.onChange((object, previous) =>
      seen.push(`${previous?.metadata?.uid} > ${object?.metadata?.uid}`),
    );
    objects.observe(createObject("a", 1, "first"));
    objects.observe(createObject("a", 2, "second"));
    assert.deepEqual(seen, ["undefined > first", "first > undefined", "undefined > second"]);
    objects.observeRemoval(createObject("a", 3, "first"));
    assert.equal(objects.get("work/a")?.metadata?.uid, "second");
  });

  it("are found by owner, and without owner, as owners change", () => {
    const objects = new LiveObjects();
    const names = (owner: string) => objects.ownedBy(owner).map(({ metadata }) => metadata?.name);
    objects.observe(createObject("a", 1, "a", "one"));
    objects.observe(createObject("b", 2, "b"));
    assert.deepEqual([names("one"), names("")], [["a"], ["b"]]);
    objects.observe(createObject("a", 3, "a"));
    assert.deepEqual([names("one"), names("")], [[], ["b", "a"]]);
  });

  it("are found by selector in a namespace, as labels change", () => {
    const objects = new LiveObjects();
    const put = (name: string, version: number, labels: Record<string, string>, namespace = "work") =>
      objects.observe({
        metadata: { ...createObject(name, version).metadata, uid: `${namespace}/${name}`, namespace, labels },
      });
    const names = (selector: LabelSelector | undefined) =>
      objects.selectedBy(selector, "work").map(({ metadata }) => metadata?.name);
    put("a", 1, { app: "web", tier: "front" });
    put("b", 2, { app: "web", tier: "back" });
    put("c", 3, { app: "web", tier: "front" }, "elsewhere");
    assert.deepEqual(names({ matchLabels: { app: "web" } }), ["a", "b"]);
    assert.deepEqual(names({ matchLabels: { app: "web", tier: "back" } }), ["b"]);
    assert.deepEqual(names({ matchLabels: { app: "web", tier: "none" } }), []);
    assert.deepEqual(names({ matchExpressions: [{ key: "tier", operator: "In", values: ["back"] }] }), ["b"]);
    assert.deepEqual([names({}), names(undefined)], [["a", "b"], []]);
    put("b", 4, { app: "web", tier: "front" });
    assert.deepEqual(names({ matchLabels: { tier: "back" } }), []);
    assert.deepEqual(names({ matchLabels: { tier: "front" } }), ["a", "b"]);
    objects.observeRemoval(createObject("a", 5, "work/a"));
    assert.deepEqual(names({ matchLabels: { tier: "front" } }), ["b"]);
  });

  it("are deleted when a new list does not have them", () => {
    const objects = new LiveObjects();
    objects.replace([createObject("a", 1), createObject("b", 1)]);
    objects.replace([createObject("b", 1)]);
    assert.equal(objects.get("work/a"), undefined);
    assert.equal(objects.withUid("uid-a"), undefined);
    assert.equal(objects.inNamespace("work").length, 1);
  });

  it("count as leaving once their deletion was requested", () => {
    const objects = new LiveObjects();
    const object = createObject("a", 1);
    objects.observe(object);
    assert.equal(objects.isLeaving(object), false);
    objects.condemn(object);
    assert.equal(objects.isLeaving(object), true);
  });
});
