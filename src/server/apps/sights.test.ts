import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../../gen/ctrl/v1/cluster_service_pb.ts";
import {
  BreakerStatus_State as Breaker,
  ObjectStatus_Outcome as Outcome,
  StreamStatus_State as State,
} from "../../gen/krane/v1/agent_pb.ts";
import { noGateway } from "../../kinds/route/report.ts";
import { createSpec } from "../kind-messages.ts";
import type { StoredObject } from "../store.ts";
import { trafficOf } from "./sights.ts";

const nowMs = 1_700_000_000_000;
const spec = createSpec("route", {
  k8sNamespace: "acme",
  k8sName: "web",
  routeId: "rt_1",
  deploymentId: "app_web-2",
});
const row = { id: "rt_1", spec, desired: "running", version: 7n } as const;
const reported = (deploymentId: string, exists = true): StoredObject<"route"> => ({
  row,
  report: { deploymentId, exists, gateway: noGateway, atMs: nowMs },
  reportedVersion: 7n,
});
const unreported: StoredObject<"route"> = { row, reportedVersion: 0n };

type ReportInit = Exclude<MessageInitShape<typeof ReportAgentStateRequestSchema>, { $typeName: string }>;

function agent(state: ReportInit, atMs = nowMs) {
  const report = { report: create(ReportAgentStateRequestSchema, state), atMs };
  return { heartbeatAtMs: atMs, state: report, known: report };
}

const routes = { name: "routes", stream: { settledUpTo: 7n } };
const serving = agent({ state: { controllers: [routes] } });

test("traffic is where a heard agent reported it, and unknown before that", () => {
  assert.deepEqual(trafficOf(undefined, serving, nowMs), { state: "none" });
  assert.deepEqual(trafficOf(unreported, serving, nowMs), { state: "unknown" });
  const at = {
    state: "at",
    deploymentId: "app_web-1",
    isFinal: false,
    isSettled: true,
    nextDeploymentId: "",
  };
  assert.deepEqual(trafficOf(reported("app_web-1"), serving, nowMs), at);
  assert.deepEqual(trafficOf(reported("app_web-1"), serving, nowMs + 600_000), { state: "unknown" });
});

test("a report of traffic may be older than the newest route until the agent has applied that", () => {
  const behind = { name: "routes", stream: { settledUpTo: 6n } };
  const at = {
    state: "at",
    deploymentId: "app_web-1",
    isFinal: false,
    isSettled: false,
    nextDeploymentId: "",
  };
  assert.deepEqual(trafficOf(reported("app_web-1"), agent({ state: { controllers: [behind] } }), nowMs), at);
  const breaker = { state: Breaker.OPEN };
  const paused = agent({ state: { controllers: [{ ...routes, breaker }] } });
  assert.deepEqual(trafficOf(reported("app_web-1"), paused, nowMs), {
    ...at,
    isSettled: true,
    nextDeploymentId: "",
  });
  const older = { ...reported("app_web-1"), reportedVersion: 6n };
  assert.deepEqual(trafficOf(older, paused, nowMs), { state: "unknown" });
});

test("an agent without routes leads nobody anywhere, unless it reported otherwise before", () => {
  const resting = { name: "routes", stream: { state: State.UNSUPPORTED } };
  for (const controllers of [[], [{ name: "deployments" }], [resting]]) {
    const without = agent({ state: { controllers } });
    assert.deepEqual(trafficOf(unreported, without, nowMs), { state: "none" });
    assert.deepEqual(trafficOf(reported("", false), without, nowMs), { state: "none" });
    const left = {
      state: "at",
      deploymentId: "app_web-1",
      isFinal: true,
      isSettled: false,
      nextDeploymentId: "",
    };
    assert.deepEqual(trafficOf(reported("app_web-1"), without, nowMs), left);
  }
});

test("a route that is refused stays where it was reported", () => {
  const trouble = { controller: "routes", key: "acme/web", id: "rt_1", desiredVersion: 7n };
  const refusing = agent({
    state: { controllers: [routes] },
    troubledObjects: [{ ...trouble, outcome: Outcome.CONFLICT, reason: "taken" }],
  });
  const nowhere = { state: "at", deploymentId: "", isFinal: true, isSettled: true, nextDeploymentId: "" };
  assert.deepEqual(trafficOf(unreported, refusing, nowMs), nowhere);
  assert.deepEqual(trafficOf(reported("", false), refusing, nowMs), nowhere);
  assert.deepEqual(trafficOf(reported("app_web-1"), refusing, nowMs), {
    ...nowhere,
    deploymentId: "app_web-1",
  });
});
