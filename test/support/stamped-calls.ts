// What every call to a control plane carries, whichever road it takes there: a new RPC, or a new road, cannot
// forget it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { RegionKey } from "../../src/config/config.ts";
import type { ControlPlane } from "../../src/control-plane/connection.ts";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";

export type ClusterServiceParts = Partial<ServiceImpl<typeof ClusterService>>;

interface Arrived {
  readonly header: Headers;
  readonly request: object;
}

const never = new AbortController().signal;

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

/** How krane makes each call. A new RPC has no line here, and fails the tests below. */
const callByMethod: Readonly<Record<string, (plane: ControlPlane) => Promise<unknown>>> = {
  WatchDeployments: (plane) => drain(plane.watch(kinds.deployment, 7n, never)),
  WatchSentinels: (plane) => drain(plane.watch(kinds.sentinel, 7n, never)),
  WatchCiliumNetworkPolicies: (plane) => drain(plane.watch(kinds.policy, 7n, never)),
  WatchRoutes: (plane) => drain(plane.watch(kinds.route, 7n, never)),
  GetDesiredDeploymentState: (plane) => plane.get(kinds.deployment, { id: "d_1" }, never),
  GetDesiredSentinelState: (plane) => plane.get(kinds.sentinel, { id: "s_1" }, never),
  GetDesiredCiliumNetworkPolicyState: (plane) => plane.get(kinds.policy, { id: "p_1" }, never),
  GetDesiredRouteState: (plane) => plane.get(kinds.route, { id: "r_1" }, never),
  GetDesiredDigest: (plane) => plane.digest(kinds.deployment, new Uint8Array(), never),
  ListDesiredContents: (plane) => plane.contents(kinds.deployment, [1], never),
  ReportDeploymentStatus: (plane) => plane.report(kinds.deployment, {}, never),
  ReportDeploymentStatuses: (plane) =>
    Promise.all([plane.report(kinds.deployment, {}, never), plane.report(kinds.deployment, {}, never)]),
  ReportSentinelStatus: (plane) => plane.report(kinds.sentinel, {}, never),
  ReportRouteStatus: (plane) => plane.report(kinds.route, {}, never),
  Heartbeat: (plane) => plane.heartbeat(never),
  ReportAgentState: (plane) => plane.reportAgentState({}, never),
  ReportStandby: (plane) => plane.reportStandby({ instanceId: "ins_2", version: "1.2.3" }, never),
  WatchLogRequests: (plane) => drain(plane.watchLogRequests("ins_1", never)),
  SendLogLines: (plane) => plane.sendLogLines({}, never),
};

/** The client has the token `token-1`. */
export function testEveryCall(
  region: RegionKey,
  connect: (t: TestContext, server: ClusterServiceParts) => ControlPlane | Promise<ControlPlane>,
): void {
  for (const method of ClusterService.methods) {
    test(`${method.name} carries the token, the region header and the region key`, async (t) => {
      const seen: Arrived[] = [];
      const see = (request: object, context: HandlerContext) => {
        seen.push({ header: context.requestHeader, request });
        return {};
      };
      async function* seeStream(request: object, context: HandlerContext) {
        yield see(request, context);
      }
      const handler = method.methodKind === "unary" ? see : seeStream;
      const plane = await connect(t, { [method.localName]: handler });
      const call = callByMethod[method.name];
      assert.ok(call !== undefined, "the client has no such call, or this test does not know it");
      await call(plane);

      const [{ header, request } = assert.fail("nothing arrived")] = seen;
      assert.equal(header.get("authorization"), "Bearer token-1");
      assert.equal(header.get("x-krane-region"), region.label);
      assert.equal(header.get("connect-timeout-ms"), method.methodKind === "unary" ? "10000" : null);
      // The one RPC that has a place for it which is older than krane's.
      const number = method.name === "Heartbeat" ? 1 : 10;
      const field = method.input.fields.find((each) => each.number === number);
      assert.equal(field?.message?.typeName, "ctrl.v1.RegionKey");
      const fields = new Map<string, unknown>(Object.entries(request));
      const { platform, name } = region;
      const key = { ...(fields.get(field?.localName ?? "") as object) };
      assert.deepEqual(key, { $typeName: "ctrl.v1.RegionKey", platform, name });
      if (method.methodKind === "server_streaming" && method.name !== "WatchLogRequests") {
        assert.equal(fields.get("region"), region.label);
        assert.equal(fields.get("versionLastSeen"), 7n);
      }
      if (method.name.endsWith("State") && method.name.startsWith("GetDesired")) {
        const ids = [...fields].filter(([, value]) => /^[dspr]_1$/.test(String(value)));
        assert.equal(ids.length, 1, "what is asked for is there as well");
      }
    });
  }
}
