import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  BreakerStatus_State,
  type CacheStatusSchema,
  ControllerStatusSchema,
  StreamStatus_State,
} from "../gen/krane/v1/agent_pb.ts";
import { AgentView, healthChecks, type Isolation } from "./agent-view.ts";

/** Runs the checks for an agent with one controller of this status. */
async function troublesOf(status: MessageInitShape<typeof ControllerStatusSchema>) {
  const view = new AgentView(
    { instanceId: "ins_1", region: "local", version: "0", startedAtMs: 1, clusterId: () => "cluster-1" },
    { networkPolicy: "required", runtimeClass: "gvisor" },
  );
  view.add("deployments", {
    status: () => create(ControllerStatusSchema, { ...status, name: "deployments" }),
    failures: () => new Map(),
    objects: () => [],
    blockedDeletions: () => [],
    releaseDeletion: () => false,
    seals: { strangers: () => [], adopt: () => [] },
  });
  const { signal } = new AbortController();
  const said = [...healthChecks(view)].map(async ([name, check]) => {
    const reason = await check(signal).then(
      () => "ok",
      (error: Error) => error.message,
    );
    return [name, reason] as const;
  });
  return Object.fromEntries(await Promise.all(said));
}

const { CONNECTING, OPEN, BACKING_OFF } = StreamStatus_State;

test("a first attempt and an open stream are healthy, even with an old error", async () => {
  for (const stream of [
    { state: CONNECTING },
    { state: OPEN },
    { state: OPEN, lastErrorCode: "unavailable", lastError: "x" },
  ])
    assert.deepEqual(await troublesOf({ stream }), { "control plane": "ok", kubernetes: "ok" });
});

test("a stream that is down or reconnecting is reported with its error code", async () => {
  const error = { lastErrorCode: "unauthenticated", lastError: "token kct_1 at 10.0.0.1 refused" };
  for (const [stream, expected] of [
    [{ state: BACKING_OFF, ...error }, "deployments: stream is down (unauthenticated)"],
    [{ state: CONNECTING, ...error }, "deployments: stream is reconnecting (unauthenticated)"],
    [{ state: BACKING_OFF }, "deployments: stream is down (ended)"],
  ] as const)
    assert.equal((await troublesOf({ stream }))["control plane"], expected);
});

test("an open breaker is reported in addition to the stream", async () => {
  const told = await troublesOf({
    stream: { state: BACKING_OFF },
    breaker: { state: BreakerStatus_State.OPEN },
  });
  assert.equal(
    told["control plane"],
    "deployments: stream is down (ended); deployments: reports are failing",
  );
});

test("each kind that cannot be watched is named, without the server's message", async () => {
  const told = await troublesOf({
    caches: [
      { kind: "Pod", synced: true },
      { kind: "apps/ReplicaSet", synced: true, lastError: "connect ECONNREFUSED 10.0.0.1:443" },
      { kind: "cilium.io/CiliumNetworkPolicy", synced: false },
    ],
  });
  assert.equal(told["kubernetes"], "deployments: cannot watch ReplicaSet, CiliumNetworkPolicy");
});

function warningsOf(isolation: Isolation, policies: MessageInitShape<typeof CacheStatusSchema>) {
  const view = new AgentView(
    { instanceId: "ins_1", region: "local", version: "0", startedAtMs: 1, clusterId: () => "cluster-1" },
    isolation,
  );
  const caches = [
    { kind: "Pod", synced: true },
    { kind: "cilium.io/CiliumNetworkPolicy", ...policies },
  ];
  view.add("deployments", {
    status: () => create(ControllerStatusSchema, { name: "deployments", caches }),
    failures: () => new Map(),
    objects: () => [],
    blockedDeletions: () => [],
    releaseDeletion: () => false,
    seals: { strangers: () => [], adopt: () => [] },
  });
  return view.status().warnings.map((warning) => warning.split(":")[0]);
}

test("the status warns of each protection that the settings allow to be missing, while it is missing", () => {
  const missing = { synced: false, lastError: "404" };
  const present = { synced: true };
  const strict: Isolation = { networkPolicy: "required", runtimeClass: "gvisor" };
  const open: Isolation = { networkPolicy: "best-effort", runtimeClass: "gvisor" };
  const [network, sandbox] = ["nothing isolates tenants on the network", "trusted code only"];
  assert.deepEqual(warningsOf(strict, missing), []);
  assert.deepEqual(warningsOf(open, present), []);
  // The first list is under way.
  assert.deepEqual(warningsOf(open, { synced: false }), []);
  assert.deepEqual(warningsOf(open, missing), [network]);
  assert.deepEqual(warningsOf({ ...strict, runtimeClass: "" }, present), [sandbox]);
  assert.deepEqual(warningsOf({ ...open, runtimeClass: "" }, missing), [sandbox, network]);
});
