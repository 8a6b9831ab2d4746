import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { ownPod } from "../../../test/support/own-workload.ts";
import type { ManagedFieldsEntry } from "../../kube/types.ts";
import { annotationKeys } from "../../model/labels.ts";
import { hasLaterMark, laterImage, podWeakness } from "./pod-weakness.ts";

const hole = "dev.gvisor.internal.hole";
const createdAt = "2026-01-01T00:00:00Z";
const onlyHole = { "f:metadata": { "f:annotations": { [`f:${hole}`]: {} } } };
const creator: ManagedFieldsEntry = {
  manager: "kube-controller-manager",
  operation: "Update",
  time: createdAt,
  fieldsV1: { ...onlyHole, "f:spec": { "f:hostPID": {} } },
};
const annotator: ManagedFieldsEntry = {
  manager: "kubectl-annotate",
  operation: "Update",
  time: "2026-01-02T00:00:00Z",
  fieldsV1: onlyHole,
};
const debuggerOf = (manager: string): ManagedFieldsEntry => ({
  manager,
  operation: "Update",
  subresource: "ephemeralcontainers",
  fieldsV1: { "f:spec": { "f:ephemeralContainers": {} } },
});

function pod(
  spec: object,
  managedFields: readonly ManagedFieldsEntry[] = [creator],
  annotations: Readonly<Record<string, string>> = {},
): Pod {
  const own = ownPod();
  return {
    ...own,
    metadata: {
      ...own.metadata,
      creationTimestamp: createdAt,
      annotations: { ...own.metadata?.annotations, ...annotations },
      managedFields: [...managedFields] as NonNullable<Pod["metadata"]>["managedFields"] & object,
    },
    spec: { containers: [], ...own.spec, ...spec },
  };
}

test("a pod as krane's template makes it is isolated", () => {
  assert.equal(podWeakness(pod({})), undefined);
});

test("a field that Kubernetes never lets change was set at the creation, by an unknown client", () => {
  assert.deepEqual(podWeakness(pod({ hostPID: true })), {
    what: "hostPID",
    isFromCreation: true,
    changedBy: "unknown",
  });
});

test("an ephemeral container was added later, by the manager of that subresource", () => {
  const ephemeralContainers = [{ name: "debugger" }];
  const expected = { what: "ephemeral container debugger", isFromCreation: false };
  assert.deepEqual(podWeakness(pod({ ephemeralContainers }, [creator, debuggerOf("kubectl-debug")])), {
    ...expected,
    changedBy: 'field manager "kubectl-debug"',
  });
  assert.deepEqual(podWeakness(pod({ ephemeralContainers }, [])), { ...expected, changedBy: "unknown" });
});

test("an annotation is from the creation unless another manager wrote it", () => {
  const annotations = { [hole]: "1" };
  const what = `annotation ${hole}`;
  assert.deepEqual(podWeakness(pod({}, [creator], annotations)), {
    what,
    isFromCreation: true,
    changedBy: "unknown",
  });
  assert.deepEqual(
    podWeakness(pod({}, [{ ...creator, fieldsV1: { "f:spec": {} } }, annotator], annotations)),
    {
      what,
      isFromCreation: false,
      changedBy: 'field manager "kubectl-annotate"',
    },
  );
});

test("an annotation is not from the creation if its manager also changed the image, or took the creator's name", () => {
  const annotations = { [hole]: "1" };
  const later = { ...creator, time: "2026-01-01T00:05:00Z" };
  const imageToo = { ...later, manager: "kubectl-patch", fieldsV1: { ...onlyHole, "f:spec": {} } };
  for (const managedFields of [[later], [{ ...creator, fieldsV1: { "f:spec": {} } }, imageToo]])
    assert.equal(podWeakness(pod({}, managedFields, annotations))?.isFromCreation, false);
});

test("an image counts as changed unless the request that created the pod wrote it", () => {
  const containers = [{ name: "deployment", image: "web:1" }];
  const wrote = { "f:containers": { 'k:{"name":"deployment"}': { "f:image": {} } } };
  const created = { ...creator, fieldsV1: { "f:spec": wrote } };
  const changed = { ...created, manager: "kubectl-set", time: "2026-01-02T00:00:00Z" };
  assert.equal(laterImage(pod({ containers }, [created])), undefined);
  for (const managedFields of [[], [creator], [changed], [created, changed]])
    assert.equal(laterImage(pod({ containers }, managedFields)), "web:1");
  assert.equal(laterImage(pod({ containers: [] }, [])), undefined);
});

test("the mark of its template counts as changed unless the request that created the pod wrote it", () => {
  const mark = { "f:metadata": { "f:annotations": { [`f:${annotationKeys.templateHash}`]: {} } } };
  const created = { ...creator, fieldsV1: { ...mark, "f:spec": {} } };
  const annotated = { ...annotator, fieldsV1: mark };
  assert.equal(hasLaterMark(pod({}, [created])), false);
  for (const managedFields of [[], [creator, annotated], [{ ...created, time: "2026-01-02T00:00:00Z" }]])
    assert.equal(hasLaterMark(pod({}, managedFields)), true);
  assert.equal(hasLaterMark({ metadata: {}, spec: { containers: [] } }), false);
});

test("a pod that was weak from its creation stays so, whatever is added later", () => {
  const both = pod({ hostPID: true, ephemeralContainers: [{ name: "x" }] }, [creator, debuggerOf("y")]);
  assert.equal(podWeakness(both)?.isFromCreation, true);
});

test("the name of a manager is cut, and prints as text", () => {
  const weak = pod({ ephemeralContainers: [{ name: "x" }] }, [debuggerOf(`\u001b[31m"${"a".repeat(200)}`)]);
  const text = podWeakness(weak)?.changedBy ?? "";
  assert.ok(text.length < 120 && !text.includes("\u001b"), text);
});

test("a pod without the mark, or one that is ending or has ended, is not judged", () => {
  const weak = pod({ hostPID: true });
  const { [annotationKeys.templateHash]: _, ...annotations } = weak.metadata?.annotations ?? {};
  const unmarked = { ...weak, metadata: { ...weak.metadata, annotations } };
  const ending = { ...weak, metadata: { ...weak.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
  for (const one of [unmarked, ending, { ...weak, status: { phase: "Failed" } }])
    assert.equal(podWeakness(one), undefined);
});
