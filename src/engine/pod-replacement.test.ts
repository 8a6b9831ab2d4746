import assert from "node:assert/strict";
import { test } from "node:test";
import { deletionBudget } from "../../test/support/deletion-limits.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { type PodGroup, type PodMember, PodReplacement } from "./pod-replacement.ts";

const minute = 60_000;

function honest(uid: string, namespace = "acme"): PodMember {
  return { ref: { namespace, name: uid }, uid, isRunning: true, weakness: undefined };
}

function weak(uid: string, isFromCreation = true, namespace?: string): PodMember {
  return { ...honest(uid, namespace), weakness: { what: "hostPID", isFromCreation, changedBy: "unknown" } };
}

class World implements PodGroup {
  readonly clock = new FakeClock();
  readonly replacement = new PodReplacement(deletionBudget, this.clock);
  readonly owner: string;
  wanted = { replicas: 3, version: 1n };
  pods: readonly PodMember[];
  live = 3;
  complete = true;
  total = 3;

  constructor(owner = "ReplicaSet acme/web", pods: readonly PodMember[] = []) {
    this.owner = owner;
    this.pods = pods;
  }

  members() {
    return this.pods;
  }
  hasWeak() {
    return this.pods.some(({ weakness }) => weakness !== undefined);
  }
  replicas() {
    return this.live;
  }
  isComplete() {
    return this.complete;
  }
  podsInAll() {
    return this.total;
  }

  next() {
    return this.replacement.next(this);
  }

  /** Asserts that this pod is to be evicted, and evicts it. */
  evict(name: string): void {
    const decision = this.next();
    assert.equal(decision.kind === "evict" && decision.pod.ref.name, name);
    if (decision.kind === "evict") this.replacement.note(this, decision.pod);
  }

  get limit(): number | undefined {
    return this.replacement.limitOf(this.owner);
  }
}

/** A world whose first pod was evicted and came back weak. */
function heldWorld(): World {
  const world = new World();
  world.pods = [weak("a"), honest("b"), honest("c")];
  world.evict("a");
  world.pods = [honest("b"), honest("c"), weak("d")];
  const decision = world.next();
  assert.equal(decision.kind === "hold" && decision.limit, "lowered");
  world.live = 2;
  world.pods = [honest("b"), honest("c")];
  return world;
}

test("isolated pods are left alone", () => {
  const world = new World();
  world.pods = [honest("a"), honest("b")];
  assert.deepEqual(world.next(), { kind: "nothing" });
});

test("the next weak pod waits until the deployment is complete, but not for ever", async () => {
  const world = new World();
  world.pods = [weak("a"), weak("b"), honest("c")];
  world.evict("a");
  world.pods = [weak("b"), honest("c"), honest("d")];
  world.complete = false;
  assert.equal(world.next().kind, "wait");
  await world.clock.advance(5 * minute);
  world.evict("b");
  world.complete = true;
  assert.equal(world.next().kind, "evict");
});

test("no more pods are evicted than the budget allows, and a refused eviction does not count", async () => {
  const world = new World();
  const left = (...uids: string[]) => {
    world.pods = uids.map((uid) => weak(uid, false, uid < "c" ? "acme" : "other"));
  };
  left("a", "b", "c", "d", "e");
  for (const pod of world.pods.slice(0, 3)) world.replacement.note(world, pod)();
  world.evict("a");
  left("b", "c", "d", "e");
  world.evict("b");
  left("c", "d", "e");
  world.evict("c");
  left("d", "e");
  const decision = world.next();
  assert.match(
    decision.kind === "wait" ? decision.reason : "",
    /^pod d is less isolated than its template \(hostPID\); the budget of 3 evictions per 10 minutes is used up$/,
  );
  world.total = 20;
  world.evict("d");
  left("e");
  assert.equal(world.next().kind, "wait");
  await world.clock.advance(10 * minute);
  assert.equal(world.next().kind, "evict");
});

test("one namespace leaves half of the budget to others", () => {
  const world = new World();
  world.total = 20;
  const weakOf = (namespace: string, ...uids: string[]) => {
    world.pods = uids.map((uid) => weak(uid, false, namespace));
  };
  weakOf("busy", "a");
  world.evict("a");
  weakOf("busy", "b");
  world.evict("b");
  weakOf("busy", "c");
  const decision = world.next();
  assert.match(
    decision.kind === "wait" ? decision.reason : "",
    /its namespace has used half of the budget of 4 evictions per 10 minutes$/,
  );
  weakOf("other", "d");
  world.evict("d");
});

test("a pod whose eviction keeps failing uses the budget once, and leaves the rest to others", () => {
  const world = new World();
  world.pods = [weak("a", false)];
  for (const _ of [1, 2, 3, 4]) world.evict("a");
  const decision = world.replacement.next(new World("ReplicaSet acme/api", [weak("b", false)]));
  assert.equal(decision.kind, "evict");
});

test("a replacement that is weak holds the deployment at the pods that were there before", () => {
  const world = heldWorld();
  assert.equal(world.limit, 2);
  const decision = world.next();
  assert.equal(decision.kind === "hold" && decision.limit, "same");
  assert.match(
    decision.kind === "hold" ? decision.reason : "",
    /^the cluster lowers the isolation of pods of ReplicaSet acme\/web when it creates them: hostPID, changed by unknown\./,
  );
});

test("a weak pod from before stays while the deployment is held", () => {
  const world = new World();
  world.pods = [weak("a"), weak("b"), honest("c")];
  world.evict("a");
  world.pods = [weak("b"), honest("c"), weak("d")];
  assert.equal(world.next().kind, "hold");
  assert.equal(world.limit, 2);
  world.live = 2;
  world.pods = [weak("b"), honest("c")];
  assert.equal(world.next().kind, "hold");
  assert.equal(world.limit, 2);
});

test("a pod that somebody changed after its creation does not count as a replacement that came back", () => {
  const world = new World();
  world.pods = [weak("a", false), honest("b"), honest("c")];
  world.evict("a");
  world.pods = [honest("b"), honest("c"), weak("d", false)];
  world.evict("d");
});

test("a weak pod that is created long after a replacement is replaced too", async () => {
  const world = new World();
  world.pods = [weak("a"), honest("b"), honest("c")];
  world.evict("a");
  await world.clock.advance(60 * minute);
  world.pods = [honest("b"), honest("c"), weak("d")];
  world.evict("d");
});

test("each further weak pod lowers the number by one, down to none", () => {
  const world = heldWorld();
  for (const [uid, left] of [
    ["e", 1],
    ["f", 0],
    ["g", 0],
  ] as const) {
    world.pods = [weak(uid)];
    assert.equal(world.next().kind, "hold");
    assert.equal(world.limit, left);
    world.live = left;
  }
});

test("after an hour it may have one more pod, and is released when that one is isolated", async () => {
  const world = heldWorld();
  await world.clock.advance(60 * minute);
  const decision = world.next();
  assert.equal(decision.kind === "hold" && decision.limit, "raised");
  assert.equal(world.limit, 3);
  world.live = 3;
  world.pods = [honest("b"), honest("c"), weak("e")];
  assert.equal(world.next().kind, "hold");
  assert.equal(world.limit, 2);
  world.live = 2;
  await world.clock.advance(60 * minute);
  world.pods = [honest("b"), honest("c")];
  world.next();
  world.live = 3;
  world.pods = [honest("b"), honest("c"), { ...honest("f"), isRunning: false }];
  assert.equal(world.next().kind, "hold");
  world.pods = [honest("b"), honest("c"), honest("f")];
  assert.deepEqual(world.next(), { kind: "release" });
  assert.equal(world.limit, undefined);
  assert.deepEqual(world.next(), { kind: "nothing" });
});

test("a new version may have one more pod at once, and an older one changes nothing", () => {
  const world = heldWorld();
  world.wanted = { replicas: 3, version: 2n };
  assert.equal(world.next().kind, "hold");
  assert.equal(world.limit, 3);
  world.wanted = { replicas: 3, version: 1n };
  const decision = world.next();
  assert.equal(decision.kind === "hold" && decision.limit, "same");
});

test("a deployment that wants no more pods than it has is released with its next version", () => {
  const world = heldWorld();
  world.wanted = { replicas: 2, version: 2n };
  assert.deepEqual(world.next(), { kind: "release" });
});

function shown(world: World, isHeld: boolean, replicas: number) {
  const { wanted } = world;
  const pods = () => world.pods.map(({ uid }) => uid);
  world.live = replicas;
  world.replacement.follow(world.owner, {
    isHeld,
    replicas,
    wanted: wanted.replicas,
    version: wanted.version,
    pods,
  });
}

test("the hold of another process goes on, and tries one more pod after an hour", async () => {
  const world = new World();
  world.pods = [honest("b"), weak("c")];
  shown(world, true, 1);
  assert.equal(world.limit, 1);
  const decision = world.next();
  assert.equal(decision.kind === "hold" && decision.limit, "same");
  await world.clock.advance(60 * minute);
  const later = world.next();
  assert.equal(later.kind === "hold" && later.limit, "raised");
  assert.equal(world.limit, 2);
  world.pods = [honest("b"), weak("c"), honest("d")];
  assert.deepEqual(world.next(), { kind: "release" });
  // The mark is still there until that is applied.
  shown(world, true, 2);
  assert.equal(world.limit, undefined);
});

test("the hold of another process ends with its mark, but not because somebody only removed the mark", () => {
  const world = new World();
  shown(world, true, 1);
  shown(world, false, 1);
  assert.equal(world.limit, 1);
  shown(world, false, 3);
  assert.equal(world.limit, undefined);
});

test("a hold of its own does not end because somebody removed the mark and scaled", () => {
  const world = heldWorld();
  shown(world, false, 3);
  assert.equal(world.limit, 2);
});

test("nothing is remembered of a deployment that was deleted", () => {
  const world = heldWorld();
  world.replacement.forget(world.owner);
  world.pods = [weak("h")];
  world.evict("h");
});
