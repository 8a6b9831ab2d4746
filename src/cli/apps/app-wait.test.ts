import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  AppViewSchema,
  ObjectKind,
  ObjectView_Phase as ObjectPhase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as Phase } from "../../gen/krane/admin/v1/app_pb.ts";
import { verdictOn } from "./app-wait.ts";

const currentAtMs = 1_700_000_000_000n;
const deploymentId = "app_web-1";

/** An app on release 1, whose Service was last reported to lead there. */
const appWith = (route: { readonly phase: ObjectPhase; readonly reportedAtMs: bigint }) =>
  create(AppViewSchema, {
    app: { releases: [{ number: 1, phase: Phase.CURRENT, currentAtMs, template: { deploymentId } }] },
    deployments: [{ ref: { kind: ObjectKind.DEPLOYMENT, id: deploymentId }, phase: ObjectPhase.READY }],
    route: {
      phase: route.phase,
      route: { deploymentId, exists: true, reportedAtMs: route.reportedAtMs },
    },
  });

const verdict = (phase: ObjectPhase, reportedAtMs: bigint) =>
  verdictOn(appWith({ phase, reportedAtMs }), 0, "app/app_web").kind;

test("a release is waited for until its route is applied, so that krane get routes then says Ready", () => {
  const later = currentAtMs + 1n;
  assert.equal(verdict(ObjectPhase.WAITING, later), "waiting");
  assert.equal(verdict(ObjectPhase.READY, later), "done");
  assert.equal(verdict(ObjectPhase.FAILED, later), "failed");
});

test("a report from before an undo does not say that traffic is back", () => {
  const view = appWith({ phase: ObjectPhase.WAITING, reportedAtMs: currentAtMs - 1n });
  assert.match(verdictOn(view, 0, "app/app_web").text, /its traffic has not moved yet/);
  assert.equal(verdict(ObjectPhase.READY, currentAtMs - 1n), "done", "the agent had nothing new to report");
});
