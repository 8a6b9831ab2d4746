import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { Secret } from "../config/secret.ts";
import { ClusterService } from "../gen/ctrl/v1/cluster_service_pb.ts";
import { type KindName, kindOf, type StateMessage } from "../kinds/kinds.ts";
import { createInMemoryControlPlane } from "./in-process.ts";
import { createSpec } from "./kind-messages.ts";
import { limitedState, sentLimit } from "./message-limit.ts";
import type { Row } from "./store.ts";

const long = "ä€𝄞".repeat(1_000);
const specs = {
  deployment: createSpec("deployment", {
    k8sNamespace: "acme",
    k8sName: "web",
    deploymentId: "d_1",
    image: long,
    command: ["sh", long, ""],
    encryptedEnvironmentVariables: new Uint8Array(5_000),
    cpuMillicores: -1n,
    healthcheck: new Uint8Array(1_000),
  }),
  sentinel: createSpec("sentinel", { k8sName: "gate", sentinelId: "s_1", image: long, memoryMib: -1n }),
  policy: createSpec("policy", {
    k8sNamespace: "acme",
    k8sName: "allow",
    ciliumNetworkPolicyId: "p_1",
    policy: new Uint8Array(10_000),
  }),
  route: createSpec("route", {
    k8sNamespace: "acme",
    k8sName: "web",
    routeId: "rt_1",
    backends: Array.from({ length: 100 }, (_, index) => ({
      deploymentId: `d_${index}-${long.slice(0, 90)}`,
    })),
  }),
};

function rowOf<K extends KindName>(kind: K): Row<K> {
  // Only what the limit looks at.
  return { spec: specs[kind], version: 2n ** 60n, desired: "running" } as unknown as Row<K>;
}

function encoded<K extends KindName>(kind: K, state: StateMessage<K>): Uint8Array {
  const schema: DescMessage = kindOf(kind).stateSchema;
  return toBinary(schema, state as Message);
}

describe("a state that an agent can receive", () => {
  for (const kind of ["deployment", "sentinel", "policy"] as const) {
    const whole = limitedState(kind, rowOf(kind), Number.MAX_SAFE_INTEGER);
    const { byteLength } = encoded(kind, whole);

    test(`is sent as it is, to the byte: ${kind}`, () => {
      assert.equal(whole.state.case, "apply");
      assert.deepEqual(limitedState(kind, rowOf(kind), byteLength), whole);
    });

    test(`is replaced by its identity and size above that: ${kind}`, () => {
      const state = limitedState(kind, rowOf(kind), byteLength - 1);
      const { tooLarge, version } = state;
      // An agent that does not know `too_large` must see neither case, or it would apply half a spec.
      assert.deepEqual([state.state.case, version], [undefined, 2n ** 60n]);
      assert.deepEqual([tooLarge?.bytes, tooLarge?.bytesMax], [BigInt(byteLength), BigInt(byteLength - 1)]);
      const { keyOf, idOf } = kindOf(kind);
      assert.ok(tooLarge?.spec !== undefined);
      assert.equal(keyOf(tooLarge.spec as never), keyOf(specs[kind] as never));
      assert.equal(idOf(tooLarge.spec as never), idOf(specs[kind] as never));
      assert.ok(encoded(kind, state).byteLength < 100);
    });
  }

  test("fits, however long the names are", () => {
    const name = "n".repeat(100_000);
    const spec = createSpec("deployment", { k8sNamespace: name, k8sName: name, deploymentId: name });
    const row = { ...rowOf("deployment"), spec };
    assert.ok(encoded("deployment", limitedState("deployment", row, 4_096)).byteLength < 4_096);
  });
});

test("a limit that cannot be one is rejected", () => {
  const header = (value: string) => new Headers({ "x-krane-message-bytes-max": value });
  assert.equal(sentLimit(new Headers()), undefined);
  assert.equal(sentLimit(header("8388608")), 8_388_608);
  for (const value of ["", "0", "4095", "-1", "1e9", "many", "99999999999"])
    assert.throws(
      () => sentLimit(header(value)),
      (error) => error instanceof ConnectError && error.code === Code.InvalidArgument,
      value,
    );
});

test("a stream always has a limit; a single response has only the one that the agent sends", async () => {
  const plane = createInMemoryControlPlane(
    { tokens: [new Secret("token")] },
    { clock: new FakeClock(), log: createQuietLog() },
  );
  const region = "local.dev";
  await plane.store.registerRegion(region);
  const encryptedEnvironmentVariables = new Uint8Array(9 * 1024 * 1024);
  const spec = { ...specs.deployment, encryptedEnvironmentVariables };
  await plane.store.put(region, "deployment", spec, { by: "test", atMs: 0 });
  const client = createClient(ClusterService, plane.createTransport());
  const common = { authorization: "Bearer token", "x-krane-region": region };
  const seen = async (limit: Readonly<Record<string, string>>) => {
    const headers = { ...common, ...limit };
    const response = await client.getDesiredDeploymentState({ deploymentId: "d_1" }, { headers });
    for await (const state of client.watchDeployments({ region }, { headers }))
      return [state, response].map((one) =>
        one.tooLarge === undefined ? one.state.case : one.tooLarge.bytesMax,
      );
    return [];
  };
  assert.deepEqual(await seen({}), [8_388_608n, "apply"]);
  assert.deepEqual(await seen({ "x-krane-message-bytes-max": "1000000" }), [1_000_000n, 1_000_000n]);
  assert.deepEqual(await seen({ "x-krane-message-bytes-max": "10000000" }), ["apply", "apply"]);
});
