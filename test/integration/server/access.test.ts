// Who is let in, and which region a call is about: the same for every RPC that there is.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ClusterService } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { applyRoute } from "../../support/route-messages.ts";
import {
  aws,
  type ClusterClient,
  deployment,
  dev,
  policy,
  readStream,
  type ServedControlPlane,
  sentinel,
  serveControlPlane,
  token,
} from "./served-control-plane.ts";

type Rpc = keyof typeof ClusterService.method;
/** The client as a table of calls: the union of the types of all methods is too large for the compiler. */
type Calls = Readonly<
  Record<
    Rpc,
    (request: object, options: { signal: AbortSignal }) => Promise<unknown> | AsyncIterable<unknown>
  >
>;
type RegionParts = { readonly platform: string; readonly name: string };

const requests: { readonly [R in Rpc]: object } = {
  watchDeployments: {},
  watchSentinels: {},
  watchCiliumNetworkPolicies: {},
  watchRoutes: {},
  getDesiredDeploymentState: { deploymentId: "d_1" },
  getDesiredSentinelState: { sentinelId: "s_1" },
  getDesiredCiliumNetworkPolicyState: { ciliumNetworkPolicyId: "p_1" },
  getDesiredRouteState: { routeId: "rt_1" },
  getDesiredDigest: { kind: "deployment" },
  listDesiredContents: { kind: "deployment", buckets: [0] },
  reportDeploymentStatus: { change: { case: "update", value: { k8sName: "app-1" } } },
  reportDeploymentStatuses: {
    entries: [{ report: { change: { case: "update", value: { k8sName: "app-1" } } } }],
  },
  reportSentinelStatus: { k8sName: "gate-1" },
  reportRouteStatus: { k8sNamespace: "acme", k8sName: "web", exists: true },
  heartbeat: {},
  reportAgentState: { state: { instanceId: "ins_1" } },
  reportStandby: { instanceId: "ins_2", version: "1.2.3" },
  watchLogRequests: { instanceId: "ins_1" },
  sendLogLines: { ticket: Buffer.from(`${"0".repeat(16)}.${"0".repeat(32)}.${"A".repeat(59)}`) },
};

const methods: readonly DescMethod[] = ClusterService.methods;

/** "ok" or the code of the first answer. Heartbeat has its key in another field than the rest. */
async function call(client: ClusterClient, method: DescMethod, region?: RegionParts): Promise<string> {
  const rpc = method.localName as Rpc;
  const key = region === undefined ? {} : { [rpc === "heartbeat" ? "region" : "regionKey"]: region };
  const cancelled = new AbortController();
  try {
    const calls = client as unknown as Calls;
    const answer = calls[rpc]({ ...requests[rpc], ...key }, { signal: cancelled.signal });
    if (Symbol.asyncIterator in answer) await answer[Symbol.asyncIterator]().next();
    else await answer;
    return "ok";
  } catch (error) {
    assert.ok(error instanceof ConnectError, String(error));
    return Code[error.code];
  } finally {
    cancelled.abort();
  }
}

async function callAll(client: ClusterClient, region?: RegionParts): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const method of methods) answers[method.name] = await call(client, method, region);
  return answers;
}

const all = (answer: string) => Object.fromEntries(methods.map((method) => [method.name, answer]));

async function fill({ admin }: ServedControlPlane, region = aws): Promise<void> {
  await admin.setDeployment(region, deployment(1));
  await admin.setSentinel(region, sentinel(1));
  await admin.setPolicy(region, policy(1));
  await admin.setRoute(region, applyRoute());
}

describe("access", () => {
  test("every RPC wants the bearer token, exactly", async (t) => {
    const server = await serveControlPlane(t, "h2c");
    await fill(server);
    assert.deepEqual(await callAll(server.connect()), all("ok"));
    const wrong = ["", token, `bearer ${token}`, `Basic ${token}`, "Bearer", `Bearer  ${token}`];
    for (const authorization of [...wrong, `Bearer ${token}x`, `Bearer ${token.slice(1)}`]) {
      const answers = await callAll(server.connect({ authorization }));
      assert.deepEqual(answers, all("Unauthenticated"), `authorization: ${authorization}`);
    }
  });

  test("a caller without a token learns nothing of regions", async (t) => {
    const server = await serveControlPlane(t, "h2c");
    const answers = await callAll(server.connect({ authorization: "", "x-krane-region": "nowhere" }));
    assert.deepEqual(answers, all("Unauthenticated"));
  });

  test("every RPC takes its region from the header or from the key alone", async (t) => {
    const server = await serveControlPlane(t, "h2c");
    await fill(server);
    const withoutHeader = server.connect({ "x-krane-region": "" });
    assert.deepEqual(await callAll(server.connect()), all("ok"));
    // A heartbeat with the key alone is that of a later version of the original.
    const withKey = await callAll(withoutHeader, { name: "us-east-1", platform: "aws" });
    assert.deepEqual(withKey, { ...all("ok"), Heartbeat: "Unimplemented" });
    assert.deepEqual(await callAll(server.connect(), { name: "us-east-1", platform: "aws" }), all("ok"));
    assert.deepEqual(await callAll(server.connect(), { name: "", platform: "" }), all("ok"));
  });

  test("the region of a platform that is set on its own may stand in the header by its name", async (t) => {
    const server = await serveControlPlane(t, "h2c");
    await server.admin.registerRegion("eu.central");
    await fill(server, "eu.central");
    const client = server.connect({ "x-krane-region": "eu.central" });
    assert.deepEqual(await callAll(client, { name: "eu.central", platform: "aws" }), all("ok"));
  });

  test("every RPC refuses a call without a region, or with two", async (t) => {
    const server = await serveControlPlane(t, "h2c");
    await fill(server);
    assert.deepEqual(await callAll(server.connect({ "x-krane-region": "" })), all("InvalidArgument"));
    const other = { name: "local", platform: "dev" };
    assert.deepEqual(await callAll(server.connect(), other), all("InvalidArgument"));
  });

  test("every RPC answers an unknown region with failed_precondition, never with not_found", async (t) => {
    const server = await serveControlPlane(t, "h2c");
    const client = server.connect({ "x-krane-region": "us-esat-1.aws" });
    assert.deepEqual(await callAll(client), all("FailedPrecondition"));
  });

  test("the string of a watch request names the region as well, and has to agree", async (t) => {
    const server = await serveControlPlane(t, "h2c");
    await server.admin.setDeployment(dev, deployment(7));
    const withoutHeader = server.connect({ "x-krane-region": "" });
    const stream = readStream(t, (options) => withoutHeader.watchDeployments({ region: dev }, options));
    assert.equal((await stream.take(1))[0]?.version, 1n);
    const disagreeing = readStream(t, (options) =>
      server.connect().watchDeployments({ region: dev }, options),
    );
    const error = await disagreeing.ending();
    assert.ok(error instanceof ConnectError && error.code === Code.InvalidArgument);
  });
});
