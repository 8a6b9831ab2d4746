import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
} from "@connectrpc/connect";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { Secret } from "../config/secret.ts";
import {
  AgentService,
  AgentStatusSchema,
  BlockedDeletionSchema,
  ObjectStatus_Outcome,
  ObjectStatusSchema,
  StrangerSchema,
} from "../gen/krane/v1/agent_pb.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { type AgentInspector, agentServiceRoutes, type ControllerInspector } from "./agent-service.ts";

const token = new Secret("of-the-test");

/** A controller with objects of these keys; those that begin with "bad" are in trouble and held back. */
function controllerOf(name: string, keys: readonly string[]): ControllerInspector & { released: string[] } {
  const isTroubled = (key: string) => key.startsWith("bad");
  const released: string[] = [];
  return {
    released,
    objects: ({ onlyTroubled }) =>
      keys
        .filter((key) => !onlyTroubled || isTroubled(key))
        .map((key) =>
          create(ObjectStatusSchema, { controller: name, key, outcome: ObjectStatus_Outcome.PARKED }),
        ),
    blockedDeletions: () =>
      keys.filter(isTroubled).map((key) => create(BlockedDeletionSchema, { controller: name, key })),
    releaseDeletion(key) {
      if (!isTroubled(key) || !keys.includes(key)) return false;
      released.push(key);
      return true;
    },
    seals: {
      strangers: () => keys.map((key) => create(StrangerSchema, { controller: name, ...placeOf(key) })),
      adopt: (objects) =>
        objects.map(({ name: key }) => {
          if (!keys.includes(key)) return { kind: "not-found" };
          if (isTroubled(key)) return { kind: "refused", reason: "not in desired state" };
          released.push(`adopted ${key}`);
          return { kind: "allowed" };
        }),
    },
  };
}

function placeOf(key: string) {
  return { kind: "apps/ReplicaSet", namespace: "acme", name: key, uid: `uid of ${key}` };
}

function serve(controllers: Readonly<Record<string, ControllerInspector>>, failure?: Error) {
  const inspector: AgentInspector = {
    controllers: new Map(Object.entries(controllers)),
    status() {
      if (failure) throw failure;
      return create(AgentStatusSchema, { instanceId: "ins_test" });
    },
  };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const source = { current: async () => token, refresh: () => undefined };
  const deps = { clock: new FakeClock(), log: createQuietLog(), metrics };
  const connect = (bearer = token.reveal()) => {
    const send: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${bearer}`);
      return next(request);
    };
    const routes = agentServiceRoutes(inspector, source, deps);
    const options = { transport: { interceptors: [send] } };
    return createClient(AgentService, createRouterTransport(routes, options));
  };
  const counted = async () =>
    [...(await metrics.render()).matchAll(/^unkey_krane_rpc_server_requests_total\{(.*)\} (\d+)/gm)].map(
      ([, labels, count]) => `${labels} ${count}`,
    );
  return { client: connect(), connect, counted };
}

const refusal = (code: Code, message: string) => (error: unknown) =>
  error instanceof ConnectError && error.code === code && error.rawMessage === message;

const keysOf = (items: readonly { readonly controller: string; readonly key: string }[]) =>
  items.map(({ controller, key }) => `${controller} ${key}`);

describe("AgentService", () => {
  test("objects are sorted by controller and key, even if the controllers are not", async () => {
    const { client } = serve({
      sentinels: controllerOf("sentinels", ["a"]),
      deployments: controllerOf("deployments", ["ns/b", "ns/a"]),
    });
    const { objects, nextPageToken } = await client.listObjects({});
    assert.deepEqual(keysOf(objects), ["deployments ns/a", "deployments ns/b", "sentinels a"]);
    assert.equal(nextPageToken, "");
  });

  test("objects can be filtered by controller and by trouble", async () => {
    const { client } = serve({
      deployments: controllerOf("deployments", ["bad-1", "good"]),
      sentinels: controllerOf("sentinels", ["bad-2"]),
    });
    const ofOne = await client.listObjects({ controller: "deployments" });
    assert.deepEqual(keysOf(ofOne.objects), ["deployments bad-1", "deployments good"]);
    const troubled = await client.listObjects({ onlyTroubled: true });
    assert.deepEqual(keysOf(troubled.objects), ["deployments bad-1", "sentinels bad-2"]);
    const blocked = await client.listBlockedDeletions({ controller: "sentinels" });
    assert.deepEqual(keysOf(blocked.blockedDeletions), ["sentinels bad-2"]);
  });

  test("pages contain every object once, for any page size", async () => {
    const keys = Array.from({ length: 1_201 }, (_, index) => `ns/${String(index).padStart(4, "0")}`);
    const { client } = serve({ deployments: controllerOf("deployments", keys) });
    for (const [pageSize, pages] of [
      [0, 3],
      [1_000_000, 3],
      [400, 4],
      [1_201, 3],
    ] as const) {
      const seen: string[] = [];
      let pageToken = "";
      let count = 0;
      do {
        const page = await client.listObjects({ pageSize, pageToken });
        seen.push(...page.objects.map(({ key }) => key));
        pageToken = page.nextPageToken;
        count += 1;
      } while (pageToken !== "");
      assert.deepEqual(seen, keys);
      assert.equal(count, pages, `pages of ${pageSize}`);
    }
  });

  test("a controller is asked for at most one object more than a page", async () => {
    const asked: unknown[] = [];
    const { client } = serve({
      c: {
        ...controllerOf("c", ["a", "b", "d"]),
        objects(filter) {
          asked.push(filter);
          return controllerOf("c", ["a", "b", "d"]).objects(filter);
        },
      },
    });
    const { nextPageToken: pageToken } = await client.listObjects({ pageSize: 1 });
    await client.listObjects({ pageSize: 2, pageToken });
    assert.deepEqual(asked, [
      { onlyTroubled: false, limit: 2, after: undefined },
      { onlyTroubled: false, limit: 3, after: "a" },
    ]);
  });

  test("an object that disappears between two pages does not hide another", async () => {
    const controllers: Record<string, ControllerInspector> = { c: controllerOf("c", ["a", "b", "d"]) };
    const first = await serve(controllers).client.listObjects({ pageSize: 2 });
    assert.deepEqual(keysOf(first.objects), ["c a", "c b"]);
    const later = serve({ c: controllerOf("c", ["a", "c", "d"]) });
    const { objects } = await later.client.listObjects({ pageToken: first.nextPageToken });
    assert.deepEqual(keysOf(objects), ["c c", "c d"]);
  });

  test("the error names the wrong field", async () => {
    const { client } = serve({ deployments: controllerOf("deployments", []) });
    const unknown = refusal(Code.InvalidArgument, "controller: must be one of: deployments");
    await assert.rejects(client.listObjects({ controller: "pods" }), unknown);
    await assert.rejects(client.listBlockedDeletions({ controller: "pods" }), unknown);
    await assert.rejects(client.releaseDeletion({ controller: "pods", key: "a" }), unknown);
    const noKey = refusal(Code.InvalidArgument, "key: is missing");
    await assert.rejects(client.releaseDeletion({ controller: "deployments" }), noKey);
    const noController = refusal(Code.InvalidArgument, "controller: is missing");
    await assert.rejects(client.releaseDeletion({ key: "a" }), noController);
    const badToken = refusal(Code.InvalidArgument, "page_token: is invalid");
    for (const pageToken of ["x", "!!!", Buffer.from('["a"]').toString("base64url")])
      await assert.rejects(client.listObjects({ pageToken }), badToken);
  });

  test("a held-back deletion can be allowed by its key, and any other key is not found", async () => {
    const controller = controllerOf("deployments", ["bad-1", "good"]);
    const { client } = serve({ deployments: controller });
    await client.releaseDeletion({ controller: "deployments", key: "bad-1" });
    assert.deepEqual(controller.released, ["bad-1"]);
    const missing = refusal(Code.NotFound, "no deletion of this key is held back");
    await assert.rejects(client.releaseDeletion({ controller: "deployments", key: "good" }), missing);
  });

  test("a stranger can be adopted by kind, name and uid, if desired state names it", async () => {
    const controller = controllerOf("deployments", ["bad-1", "good"]);
    const { client } = serve({ deployments: controller, sentinels: controllerOf("sentinels", ["gate"]) });
    const first = await client.listStrangers({ pageSize: 2 });
    const rest = await client.listStrangers({ pageSize: 2, pageToken: first.nextPageToken });
    assert.deepEqual(
      [...first.strangers, ...rest.strangers].map((each) => `${each.controller} ${each.name}`),
      ["deployments bad-1", "deployments good", "sentinels gate"],
    );
    assert.equal(rest.nextPageToken, "");
    const request = (name: string) => ({ controller: "deployments", ...placeOf(name) });
    await client.adoptObject(request("good"));
    assert.deepEqual(controller.released, ["adopted good"]);
    const unwanted = refusal(Code.FailedPrecondition, "not in desired state");
    await assert.rejects(client.adoptObject(request("bad-1")), unwanted);
    const missing = refusal(Code.NotFound, "no object of another krane has this name");
    await assert.rejects(client.adoptObject(request("other")), missing);
    for (const field of ["controller", "kind", "namespace", "name", "uid"]) {
      const noField = refusal(Code.InvalidArgument, `${field}: is missing`);
      await assert.rejects(client.adoptObject({ ...request("good"), [field]: "" }), noField);
    }
  });

  test("no method can be called without the token", async () => {
    const controller = controllerOf("deployments", ["bad-1"]);
    const { connect } = serve({ deployments: controller });
    const stranger = connect("wrong");
    const isRefused = refusal(Code.Unauthenticated, "a valid bearer token is needed");
    for (const { localName } of AgentService.methods) {
      const request = { controller: "deployments", key: "bad-1" };
      await assert.rejects(stranger[localName as "releaseDeletion"](request), isRefused, localName);
    }
    assert.deepEqual(controller.released, []);
  });

  test("internal errors are hidden from the caller, and every call is counted by its code", async () => {
    const { client, connect, counted } = serve({}, new Error("connect ECONNREFUSED 10.0.0.1"));
    await assert.rejects(client.getStatus({}), refusal(Code.Internal, "internal error"));
    await assert.rejects(connect("wrong").getStatus({}));
    await client.listObjects({});
    assert.deepEqual((await counted()).sort(), [
      'method="GetStatus",code="internal" 1',
      'method="GetStatus",code="unauthenticated" 1',
      'method="ListObjects",code="ok" 1',
    ]);
  });
});
