import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { KubeApiError } from "../kube/errors.ts";
import { evictPod } from "./pod-eviction.ts";
import { type PodGroup, PodReplacement, type WeakPod } from "./pod-replacement.ts";

const pod: WeakPod = {
  ref: { namespace: "acme", name: "web-1" },
  uid: "u-1",
  isRunning: true,
  weakness: { what: "hostPID", isFromCreation: true, changedBy: "unknown" },
};

/** Evicts the pod against a server with this answer. */
async function evict(answer: unknown) {
  const budget = { budgetObjects: 1, budgetFraction: 0, budgetWindowMs: 600_000 };
  const replacement = new PodReplacement(budget, new FakeClock());
  const group: PodGroup = {
    owner: "ReplicaSet acme/web",
    wanted: { replicas: 1, version: 1n },
    replacement,
    members: () => [pod],
    hasWeak: () => true,
    replicas: () => 1,
    isComplete: () => true,
    podsInAll: () => 1,
  };
  const sent: unknown[] = [];
  const recorded: unknown[] = [];
  const api = {
    create: async <T>(_kind: unknown, object: T): Promise<T> => {
      sent.push(object);
      if (answer instanceof Error) throw answer;
      return object;
    },
  };
  const actions = { recordEviction: (...facts: unknown[]) => void recorded.push(facts) };
  const { signal } = new AbortController();
  const outcome = await evictPod(
    { pod, reason: "evicted" },
    group,
    "acme/web",
    { api, actions },
    signal,
  ).catch((error: unknown) => error);
  const other = { ...group, owner: "ReplicaSet acme/api", members: () => [{ ...pod, uid: "u-2" }] };
  return { outcome, sent, recorded, isCounted: replacement.next(other).kind === "wait" };
}

const refusal = (status: number, reason = "", message = `${status}`) =>
  new KubeApiError("refused", `create: ${message}`, {
    status,
    causes: reason === "" ? [] : [{ reason, message: "The disruption budget all needs 2 healthy pods" }],
  });

test("an eviction names the uid and the time to end, is recorded and counts against the budget", async () => {
  const { outcome, sent, recorded, isCounted } = await evict(undefined);
  assert.deepEqual(outcome, { kind: "replacing", reason: "evicted" });
  assert.deepEqual(sent, [
    {
      metadata: { namespace: "acme", name: "web-1" },
      deleteOptions: { gracePeriodSeconds: 30, preconditions: { uid: "u-1" } },
    },
  ]);
  assert.deepEqual([recorded.length, isCounted], [1, true]);
});

for (const [what, error, reason] of [
  ["a pod with another uid", refusal(409), /it is gone$/],
  ["a pod that is gone", refusal(404), /it is gone$/],
  [
    "a disruption budget",
    refusal(429, "DisruptionBudget"),
    /a PodDisruptionBudget does not allow its eviction: The disruption budget all needs 2 healthy pods$/,
  ],
  [
    "a second disruption budget",
    refusal(500, "", "500: This pod has more than one PodDisruptionBudget, which the eviction subresource"),
    /more than one PodDisruptionBudget covers it, and Kubernetes evicts no such pod$/,
  ],
] as const)
  test(`${what} is not a failure, and nothing counts as evicted`, async () => {
    const { outcome, recorded, isCounted } = await evict(error);
    assert.match((outcome as { readonly reason: string }).reason, reason);
    assert.deepEqual([recorded, isCounted], [[], false]);
  });

test("a missing right fails, and nothing counts as evicted", async () => {
  const error = refusal(403);
  const { outcome, isCounted } = await evict(error);
  assert.deepEqual([outcome, isCounted], [error, false]);
});

test("an eviction whose outcome is unknown counts as one", async () => {
  for (const error of [new KubeApiError("timeout", "timed out"), refusal(500), refusal(429)]) {
    const { outcome, recorded, isCounted } = await evict(error);
    assert.deepEqual([outcome, recorded, isCounted], [error, [], true]);
  }
});
