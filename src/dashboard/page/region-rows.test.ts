import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  AppViewSchema,
  EnvironmentSchema,
  KindWordsSchema,
  ObjectKind,
  ObjectViewSchema,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as ReleasePhase } from "../../gen/krane/admin/v1/app_pb.ts";
import { listedRows, matching, summaryOf } from "./region-rows.ts";
import { noFilter } from "./route.ts";

const kinds = [
  create(KindWordsSchema, {
    kind: ObjectKind.DEPLOYMENT,
    name: "deployment",
    plural: "deployments",
    hasPods: true,
  }),
];

function object(id: string, phase: Phase, reason = "") {
  return create(ObjectViewSchema, {
    ...{ ref: { kind: ObjectKind.DEPLOYMENT, id }, namespace: "acme", name: id, phase, trouble: { reason } },
    spec: {
      spec: { case: "deployment", value: { image: `example/${id}:1`, replicas: 2, environmentId: "env_1" } },
    },
  });
}

const app = create(AppViewSchema, {
  app: {
    spec: { template: { deploymentId: "app_web", k8sNamespace: "acme", k8sName: "web" } },
    releases: [
      { number: 1, phase: ReleasePhase.CURRENT, template: { image: "example/web:1" } },
      { number: 2, phase: ReleasePhase.FAILED, reason: "its image cannot be pulled" },
    ],
  },
});

const rows = listedRows({
  objects: [
    object("ok", Phase.READY),
    object("bad", Phase.FAILED, "crash-looping"),
    object("gone", Phase.DELETED),
    object("new", Phase.WAITING),
  ],
  apps: [app],
  environments: [create(EnvironmentSchema, { id: "env_1", secretNames: ["KEY"] })],
  kinds,
});

test("what is in trouble comes first, environments last, and what is deleted not at all", () => {
  assert.deepEqual(
    rows.map(({ name, state, pods }) => `${name} ${state.text} ${pods}`.trim()),
    [
      ...["acme/bad Failed 0/2", "acme/web Release 2 failed", "acme/new Waiting 0/2", "acme/ok Ready 0/2"],
      "env_1 3 objects, 1 failed, 1 not ready",
    ],
  );
  assert.equal(summaryOf(rows), "1 failed · 1 waiting · 1 ready");
});

test("every word of the search must occur, in any field", () => {
  const found = (filter: Partial<typeof noFilter>) =>
    matching(rows, { ...noFilter, ...filter }).map(({ id }) => id);
  assert.deepEqual(found({ text: "CRASH env_1" }), ["bad"]);
  assert.deepEqual(found({ text: "crash env_2" }), []);
  assert.deepEqual(found({ text: "pulled" }), ["app_web"]);
  assert.deepEqual(found({ kind: "deployments", troubledOnly: true }), ["bad", "new"]);
  assert.deepEqual(found({ kind: "environments", text: "secret" }), ["env_1"]);
  assert.deepEqual(found({ kind: "apps" }), ["app_web"]);
});
