import assert from "node:assert/strict";
import { test } from "node:test";
import { createTestSeal, otherSealKey, testSeal, testSealKey } from "../../test/support/test-seal.ts";
import { ciliumNetworkPolicies, replicaSets } from "../kube/resources.ts";
import type { ObjectMeta } from "../kube/types.ts";
import { annotationKeys } from "./labels.ts";
import { createSealKey, type SealSubject } from "./seal.ts";

const subject: SealSubject = { kind: replicaSets, namespace: "acme", name: "web" };
const ids = { workspaceId: "ws_1", projectId: "proj_1", environmentId: "env_1", id: "d_1" };

function sealed(text: string, metadata: Partial<ObjectMeta> = {}): ObjectMeta {
  return {
    namespace: "acme",
    name: "web",
    uid: "u-1",
    annotations: { [annotationKeys.seal]: text },
    ...metadata,
  };
}

test("a seal proves the ids that it names, and is the same each time", () => {
  const text = testSeal.write(subject, ids);
  assert.equal(testSeal.write(subject, ids), text);
  assert.deepEqual(testSeal.read(replicaSets, sealed(text)), {
    kind: "valid",
    keyId: testSealKey.id,
    isCurrent: true,
    isAdopted: false,
    ids,
  });
  assert.match(text, /^v=1&key=[0-9a-f]{8}&region=local\.dev&workspace=ws_1&.*&id=d_1&mac=[\w-]{43}$/);
});

test("a seal proves that a template of the original was kept, and those of earlier versions stay valid", () => {
  const kept = { ...ids, keptTemplate: "h-1_2" };
  const reading = testSeal.read(replicaSets, sealed(testSeal.write(subject, kept)));
  assert.deepEqual(reading.kind === "valid" && reading.ids, kept);
  assert.equal(
    testSeal.write(subject, ids),
    "v=1&key=2596bd34&region=local.dev&workspace=ws_1&project=proj_1&environment=env_1&id=d_1&mac=68_4paO7NcqQrA8Q1uxH51iGoD7DbhtNjROLUrMPpYc",
  );
});

test("an object without the annotation has no seal", () => {
  for (const metadata of [undefined, {}, { annotations: {} }])
    assert.deepEqual(testSeal.read(replicaSets, metadata), { kind: "missing" });
});

test("a seal that was copied to another name, namespace, kind or cluster is broken", () => {
  const text = testSeal.write(subject, ids);
  const elsewhere = createTestSeal({ clusterId: "another" });
  assert.equal(testSeal.read(replicaSets, sealed(text, { name: "api" })).kind, "broken");
  assert.equal(testSeal.read(replicaSets, sealed(text, { namespace: "evil" })).kind, "broken");
  assert.equal(testSeal.read(ciliumNetworkPolicies, sealed(text)).kind, "broken");
  assert.equal(elsewhere.read(replicaSets, sealed(text)).kind, "broken");
});

test("no part of a seal can be changed, removed, added or moved", () => {
  const text = testSeal.write(subject, { ...ids, keptTemplate: "h_1" });
  const words = text.split("&");
  const edits = [
    "",
    "x",
    "%",
    `${text}&id=d_2`,
    `id=d_2&${text}`,
    text.replace("d_1", "%64_1"),
    [...words].reverse().join("&"),
    ...words.map((word) => words.filter((other) => other !== word).join("&")),
    ...words.map((word) => text.replace(word, `${word}x`)),
    text.replace("&project=proj_1", "").replace("ws_1", "ws_1proj_1"),
  ];
  for (const edited of edits) {
    const { kind } = testSeal.read(replicaSets, sealed(edited));
    assert.ok(kind === "broken" || kind === "other-key", `${edited}: ${kind}`);
  }
});

test("a seal of another region or of an unknown key is told apart from a broken one", () => {
  const other = createTestSeal({ region: "eu-1.aws" }).write(subject, ids);
  assert.deepEqual(testSeal.read(replicaSets, sealed(other)), { kind: "other-region", region: "eu-1.aws" });
  const foreign = createTestSeal({ keys: [otherSealKey] }).write(subject, ids);
  assert.deepEqual(testSeal.read(replicaSets, sealed(foreign)), {
    kind: "other-key",
    keyId: otherSealKey.id,
  });
});

test("while keys are rotated, a seal of the older key is valid but not current", () => {
  const before = testSeal.write(subject, ids);
  const rotated = createTestSeal({ keys: [testSealKey, otherSealKey] });
  const after = rotated.write(subject, ids);
  const currentOf = (text: string) => {
    const reading = rotated.read(replicaSets, sealed(text));
    return reading.kind === "valid" && reading.isCurrent;
  };
  assert.deepEqual([currentOf(before), currentOf(after)], [false, true]);
  assert.equal(rotated.read(replicaSets, sealed(before)).kind, "valid");
});

test("an adopted object is sealed for its uid only", () => {
  const text = testSeal.write(subject, ids, "u-1");
  const reading = testSeal.read(replicaSets, sealed(text));
  assert.equal(reading.kind === "valid" && reading.isAdopted, true);
  assert.equal(testSeal.read(replicaSets, sealed(text, { uid: "u-2" })).kind, "broken");
});

test("ids and regions with any characters come back exactly", () => {
  const odd = { ...ids, id: "a&b=c d%é" };
  const seal = createTestSeal({ region: "eu&west=1" });
  const reading = seal.read(replicaSets, sealed(seal.write(subject, odd)));
  assert.deepEqual(reading.kind === "valid" && reading.ids, odd);
});

test("a key must have 32 bytes, and its id does not reveal it", () => {
  assert.throws(() => createSealKey(new Uint8Array(31)), /32 bytes/);
  assert.notEqual(createSealKey(new Uint8Array(32).fill(7)).id, createSealKey(new Uint8Array(32).fill(8)).id);
});

test("a seal that was verified for one object proves nothing about another one that carries the same text", () => {
  const seal = createTestSeal();
  const text = seal.write(subject, ids);
  const read = (metadata: Partial<ObjectMeta>, kind: SealSubject["kind"] = replicaSets) =>
    seal.read(kind, sealed(text, metadata)).kind;
  for (let round = 0; round < 2; round++) {
    assert.equal(read({}), "valid");
    assert.equal(read({ name: "other" }), "broken");
    assert.equal(read({ namespace: "other" }), "broken");
    assert.equal(read({}, ciliumNetworkPolicies), "broken");
  }
  const adopted = seal.write(subject, ids, "u");
  const readAdopted = (uid: string) => seal.read(replicaSets, sealed(adopted, { uid })).kind;
  assert.deepEqual([readAdopted("u"), readAdopted("v"), readAdopted("u")], ["valid", "broken", "valid"]);
});
