// Messages of later versions of the original, and random bytes, on the methods of this one: they end in a clear refusal, never
// in an object, a deletion, a report or a heartbeat. Those of later versions are written field by field from the tables of
// their numbers.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { decode } from "../../src/control-plane/wire-types.ts";
import { readState } from "../../src/engine/desired-message.ts";
import type { EngineKind } from "../../src/engine/engine-kind.ts";
import { CiliumNetworkPolicyStateSchema } from "../../src/gen/ctrl/v1/cilium_network_policy_pb.ts";
import { DeploymentStateSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { RouteStateSchema } from "../../src/gen/ctrl/v1/route_pb.ts";
import { SentinelStateSchema } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { allKinds, kinds } from "../../src/kinds/kinds.ts";
import { appsDeployments, ciliumNetworkPolicies, replicaSets } from "../../src/kube/resources.ts";
import { agentClient, createAgentWorld } from "../integration/agent/agent-world.ts";
import { serveRpc } from "../integration/control-plane/bare-server.ts";
import {
  deployment,
  dev,
  sentinel,
  serveControlPlane,
  token,
} from "../integration/server/served-control-plane.ts";
import { applyDeployment, utf8 } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { applyPolicy } from "../support/policy-messages.ts";
import { applyRoute } from "../support/route-messages.ts";
import { applySentinel } from "../support/sentinel-messages.ts";

const never = new AbortController().signal;

type Value = string | number | Uint8Array;

/** A message with these values at these numbers. */
function message(fields: Readonly<Record<number, Value>>): Uint8Array<ArrayBuffer> {
  const writer = new BinaryWriter();
  for (const [key, value] of Object.entries(fields)) {
    const number = Number(key);
    if (typeof value === "number") writer.tag(number, WireType.Varint).uint64(value);
    else if (typeof value === "string") writer.tag(number, WireType.LengthDelimited).string(value);
    else writer.tag(number, WireType.LengthDelimited).bytes(value);
  }
  return writer.finish();
}

/** With an app's id, and so with other numbers from 4 on. */
const laterSentinel = message({
  1: "gate",
  2: "ws_1",
  3: "proj_1",
  4: "app_1",
  5: "env_1",
  6: "se_1",
  7: "registry.example/gate:1",
  8: 1,
  9: 250,
  10: 256,
});

/** Scaled by its minimum and maximum in place of replicas. */
const laterDeployment = message({
  1: "acme",
  2: "web",
  3: "ws_1",
  4: "proj_1",
  5: "env_1",
  6: "d_1",
  7: "registry.example/web:1",
  9: 250,
  10: 256,
  18: "app_1",
  27: message({ 1: 1, 2: 3 }),
});

const regionKey = message({ 1: "dev", 2: "local" });
const clusterKey = message({ 1: "dev", 2: "local", 3: "cell_1" });

/** The state of a stream with these bytes: they are written as they are. */
function stateOf<S extends DescMessage>(schema: S, bytes: Uint8Array): MessageShape<S> {
  const state = create(schema);
  state.$unknown = fromBinary(EmptySchema, bytes).$unknown ?? [];
  return state;
}

describe("a control plane of a later version whose streams have the names of this one", () => {
  test("makes no object, deletes nothing, and is named in the status", async (t) => {
    async function* send<S extends DescMessage>(schema: S, bytes: Uint8Array, signal: AbortSignal) {
      yield stateOf(schema, bytes);
      await new Promise<void>((resolve) => void signal.addEventListener("abort", () => resolve()));
    }
    const apply = (spec: Uint8Array) => message({ 1: spec, 3: 7 });
    const { url } = await serveRpc(t, {
      watchDeployments: (_, { signal }) => send(DeploymentStateSchema, apply(laterDeployment), signal),
      watchSentinels: (_, { signal }) => send(SentinelStateSchema, apply(laterSentinel), signal),
      // The one stream of later versions has a version first, and states behind it.
      watchCiliumNetworkPolicies: (_, { signal }) =>
        send(CiliumNetworkPolicyStateSchema, message({ 1: 7, 2: apply(laterDeployment) }), signal),
    });
    const { cluster, startAgent } = await createAgentWorld(t);
    const agent = await startAgent("", { control: `url = "${url}"\ntoken = "t-1234567890"` });
    const client = agentClient(t, agent.url);
    await eventually("each stream is refused by name", async () => {
      const { objects } = await client.listObjects({ onlyTroubled: true });
      assert.deepEqual(
        objects.map(({ outcome, reason }) => [outcome, reason]),
        [
          [
            Outcome.PARKED,
            "field 18 belongs to another version of the protocol; field 27 belongs to another version of the protocol",
          ],
        ],
      );
      const { status } = await client.getStatus({});
      const errors = Object.fromEntries(
        (status?.controllers ?? []).map(({ name, stream }) => [name, stream?.lastError ?? ""]),
      );
      assert.equal(errors["deployments"], "");
      assert.match(errors["sentinels"] ?? "", /ApplySentinel\.replicas .* another protocol version/);
      assert.match(errors["cilium"] ?? "", /CiliumNetworkPolicyState\.apply .* another protocol version/);
    });
    for (const kind of [replicaSets, appsDeployments, ciliumNetworkPolicies])
      assert.deepEqual((await cluster.api.list(kind as typeof replicaSets, {}, never)).items, []);
  });
});

describe("bytes on a stream of this version", () => {
  const valid = {
    deployment: create(DeploymentStateSchema, {
      version: 7n,
      state: {
        case: "apply",
        value: applyDeployment({
          buildId: "b_1",
          command: ["a"],
          port: 1,
          healthcheck: utf8('{"path":"/"}'),
        }),
      },
    }),
    sentinel: create(SentinelStateSchema, { version: 7n, state: { case: "apply", value: applySentinel() } }),
    policy: create(CiliumNetworkPolicyStateSchema, {
      version: 7n,
      state: { case: "apply", value: applyPolicy() },
    }),
    route: create(RouteStateSchema, { version: 7n, state: { case: "apply", value: applyRoute() } }),
  };

  test("are refused where a field has another type, whichever it is", () => {
    for (const kind of allKinds) {
      const { state } = valid[kind.name];
      assert.equal(state.case, "apply");
      for (const { number, name } of kind.applySchema.fields) {
        const fields =
          fromBinary(EmptySchema, toBinary(kind.applySchema, state.value as never)).$unknown ?? [];
        for (const wrong of [WireType.Varint, WireType.LengthDelimited, WireType.Bit32, WireType.Bit64]) {
          const own = fields.find(({ no }) => no === number);
          if (own === undefined || own.wireType === wrong) continue;
          const rest = fields.filter((field) => field !== own);
          const data = new Uint8Array(wrong === WireType.Bit64 ? 8 : wrong === WireType.Bit32 ? 4 : 1);
          const spec = create(EmptySchema);
          spec.$unknown = [...rest, { no: number, wireType: wrong, data }];
          const bytes = message({ 1: toBinary(EmptySchema, spec), 3: 7 });
          assert.throws(
            () => decode(kind.stateSchema, bytes),
            /another protocol version/,
            `${name}: ${wrong}`,
          );
        }
      }
    }
  });

  test("never make or delete an object where they are random", () => {
    const rules = { registries: [] };
    const spec = fc.uint8Array({ maxLength: 60 });
    const state = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.tuple(fc.constantFrom(1, 2), spec).map(([number, bytes]) => message({ [number]: bytes, 3: 7 })),
    );
    const read = (bytes: Uint8Array) =>
      allKinds.map((kind) => {
        try {
          const outcome = readState(kind as EngineKind, decode(kind.stateSchema, bytes), rules);
          return outcome.kind === "message" ? outcome.message.want.kind : outcome.kind;
        } catch (error) {
          return ConnectError.from(error).rawMessage.startsWith("parse binary") ? "refused" : error;
        }
      });
    const harmless = new Set(["refused", "invalid", "bare"]);
    fc.assert(
      fc.property(state, (bytes) => read(bytes).every((outcome) => harmless.has(String(outcome)))),
      { numRuns: 2_000 },
    );
    // The same reading takes a right one.
    assert.equal(
      read(toBinary(DeploymentStateSchema, valid.deployment)).at(allKinds.indexOf(kinds.deployment)),
      "apply",
    );
  });
});

describe("krane's server", () => {
  async function createServer(t: TestContext) {
    const { admin, running } = await serveControlPlane(t, "h2c");
    await admin.setDeployment(dev, deployment(1));
    await admin.setSentinel(dev, sentinel(1));
    const post = async (method: string, body: Uint8Array<ArrayBuffer>, headers: Record<string, string>) => {
      const response = await fetch(`${running?.url}/ctrl.v1.ClusterService/${method}`, {
        method: "POST",
        body,
        headers: { "content-type": "application/proto", authorization: `Bearer ${token}`, ...headers },
      });
      const text = await response.text();
      return response.ok ? "taken" : `${response.status} ${text.slice(0, 200)}`;
    };
    const see = async () => ({
      agents: (await admin.agents()).map(({ heartbeatAtMs, state }) => [heartbeatAtMs, state]),
      instances: await admin.instances(dev, "d_1"),
      report: await admin.deploymentReport(dev, "d_1"),
      sentinel: await admin.sentinelStatus(dev, "s_1"),
    });
    return { post, see };
  }

  test("refuses each call of a later agent, and does not take it for alive", async (t) => {
    const { post, see } = await createServer(t);
    const before = await see();
    const update = message({ 1: "app-1", 2: message({ 1: "pod", 2: "10.0.0.1:8080", 5: 2 }) });
    for (const key of [regionKey, clusterKey]) {
      const calls: Readonly<Record<string, Uint8Array<ArrayBuffer>>> = {
        WatchDeploymentChanges: message({ 1: key, 2: 7 }),
        SyncDesiredState: message({ 1: key }),
        Heartbeat: message({ 1: key }),
        GetDesiredDeploymentState: message({ 1: key, 2: "d_1" }),
        GetDesiredSentinelState: message({ 1: key, 2: "s_1" }),
        GetDesiredCiliumNetworkPolicyState: message({ 1: key, 2: "p_1" }),
        ReportDeploymentStatus: message({ 1: update, 3: key }),
        ReportSentinelStatus: message({ 1: "gate-1", 2: 1, 3: 1, 4: "s_1", 5: "image", 6: key }),
        ReportInstanceEvents: message({ 1: message({ 1: "uid", 2: "pod" }), 2: key }),
      };
      for (const [method, body] of Object.entries(calls)) {
        assert.match(await post(method, body, {}), /^(400|404|501|415)/, method);
        // Those of the weeks before sent the platform on its own.
        const headers = { "x-krane-region": dev, "x-krane-platform": "local" };
        if (method === "Heartbeat") assert.match(await post(method, body, headers), /^501/);
      }
    }
    assert.deepEqual(await see(), before);
  });

  test("takes no heartbeat from random bytes without the header of krane's agents", async (t) => {
    const { post, see } = await createServer(t);
    const before = await see();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), async (bytes) => {
        assert.match(await post("Heartbeat", Uint8Array.from(bytes), {}), /^(400|403|500|501)/);
      }),
      { numRuns: 100 },
    );
    assert.deepEqual(await see(), before);
  });

  test("takes nothing from random bytes", async (t) => {
    const { post, see } = await createServer(t);
    const before = await see();
    const methods = [
      "GetDesiredDeploymentState",
      "GetDesiredSentinelState",
      "GetDesiredCiliumNetworkPolicyState",
      "ReportDeploymentStatus",
      "ReportSentinelStatus",
      "ReportAgentState",
    ];
    const call = fc.tuple(fc.constantFrom(...methods), fc.uint8Array({ minLength: 1, maxLength: 60 }));
    await fc.assert(
      fc.asyncProperty(call, async ([method, bytes]) => {
        await post(method, Uint8Array.from(bytes), { "x-krane-region": dev });
        const { instances, report, sentinel: status } = await see();
        assert.deepEqual([instances, report, status], [before.instances, before.report, before.sentinel]);
      }),
      { numRuns: 200 },
    );
  });
});
