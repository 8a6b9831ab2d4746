import assert from "node:assert/strict";
import { test } from "node:test";
import { finalizersOf, heldText, obstacleText, withoutPodName } from "./obstacle.ts";

test("an obstacle is one short line of plain text", () => {
  assert.equal(obstacleText("ErrImagePull", "no such\n\t image"), "ErrImagePull: no such image");
  assert.equal(obstacleText("ErrImagePull", "\u001b[31mred\u0007\u202e"), "ErrImagePull: [31mred");
  assert.equal(obstacleText("Unschedulable", undefined), "Unschedulable");
  assert.equal(obstacleText(undefined, " "), "");
  const long = obstacleText("ErrImagePull", "x".repeat(1_000_000));
  assert.ok(long.length < 300 && long.endsWith("x..."), long);
});

test("only the name of the refused pod is left out", () => {
  const refused = (pod: string) => `pods "${pod}" is forbidden: exceeded quota: "web-quota"`;
  assert.equal(withoutPodName(refused("web-x7k2p"), "web"), refused("web"));
  assert.equal(withoutPodName(refused("web-6fb8c-x7k2p"), "web"), refused("web"));
  assert.equal(withoutPodName(refused("other-x7k2p"), "web"), refused("other-x7k2p"));
  assert.equal(withoutPodName('Pod "web-x7k2p" is invalid', "web"), 'Pod "web" is invalid');
  assert.equal(withoutPodName(undefined, "web"), undefined);
});

test("finalizers count only for an object that is being deleted", () => {
  const finalizers = ["example.com/a", "example.com/b"];
  const deletionTimestamp = "2026-01-01T00:00:00Z";
  assert.equal(finalizersOf({ finalizers }), undefined);
  assert.equal(finalizersOf({ deletionTimestamp }), undefined);
  const held = finalizersOf({ deletionTimestamp, finalizers });
  assert.equal(
    heldText("ReplicaSet", held ?? ""),
    "ReplicaSet is being deleted and waits for finalizer example.com/a, example.com/b",
  );
});
