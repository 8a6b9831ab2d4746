import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { AdminService, SessionSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { Model } from "./model.ts";

test("logs are offered where the session may read them", () => {
  const api = createClient(
    AdminService,
    createRouterTransport(() => undefined),
  );
  const browser = { nowMs: () => 0, after: () => () => undefined };
  const mayIn = (region: string, session: { canReadLogs: boolean; logRegions?: string[] }) => {
    const pathname = `/dashboard/regions/${region}/deployment/d_web`;
    const model = new Model(api, browser, { pathname, search: "" });
    const before = model.canReadLogs.value;
    model.signedIn.value = { kind: "in", session: create(SessionSchema, session), kinds: [] };
    return [before, model.canReadLogs.value];
  };
  assert.deepEqual(mayIn("eu.aws", { canReadLogs: true }), [false, true]);
  assert.deepEqual(mayIn("eu.aws", { canReadLogs: true, logRegions: ["eu.aws"] }), [false, true]);
  assert.deepEqual(mayIn("us.aws", { canReadLogs: true, logRegions: ["eu.aws"] }), [false, false]);
  assert.deepEqual(mayIn("eu.aws", { canReadLogs: false }), [false, false]);
});
