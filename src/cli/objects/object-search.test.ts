import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import {
  AdminService,
  ObjectKind,
  type ObjectView,
  ObjectViewSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Admin } from "../admin/admin-access.ts";
import { findObject, listObjects } from "./object-search.ts";

const region = "local.test";

function object(kind: ObjectKind, id: string, namespace: string, name: string): ObjectView {
  return create(ObjectViewSchema, { ref: { region, kind, id }, namespace, name });
}

const objects = [
  object(ObjectKind.DEPLOYMENT, "d_1", "a", "web"),
  object(ObjectKind.DEPLOYMENT, "d_2", "b", "api"),
  object(ObjectKind.DEPLOYMENT, "web", "b", "other"),
  object(ObjectKind.SENTINEL, "s_1", "sentinel", "gateway"),
  object(ObjectKind.POLICY, "p_1", "a", "gateway"),
];

/** A control plane that sends two objects a page. */
function adminOf(all: readonly ObjectView[]): Admin {
  const transport = createRouterTransport(({ service }) =>
    service(AdminService, {
      getObject({ ref }) {
        const found = all.find((each) => each.ref?.id === ref?.id && each.ref?.kind === ref?.kind);
        if (found === undefined) throw new ConnectError("no such object", Code.NotFound);
        return { object: found };
      },
      listObjects({ kind, pageToken }) {
        const asked = all.filter(({ ref }) => kind === ObjectKind.UNSPECIFIED || ref?.kind === kind);
        const start = Number(pageToken);
        const isLast = start + 2 >= asked.length;
        return { objects: asked.slice(start, start + 2), nextPageToken: isLast ? "" : String(start + 2) };
      },
    }),
  );
  const { signal } = new AbortController();
  return { client: createClient(AdminService, transport), region, signal } as Admin;
}

const idsOf = (views: readonly ObjectView[]) => views.map(({ ref }) => ref?.id);

describe("objects by what people call them", () => {
  const admin = adminOf(objects);
  const find = async (name: string, kind?: ObjectKind) =>
    (await findObject(admin, name, kind)).object.ref?.id;

  test("an id wins over a name", async () => {
    assert.equal(await find("web", ObjectKind.DEPLOYMENT), "web");
    assert.equal(await find("web"), "web");
  });

  test("a name is enough where only one object has it", async () => {
    assert.equal(await find("api", ObjectKind.DEPLOYMENT), "d_2");
    assert.equal(await find("a/web"), "d_1");
    assert.equal(await find("gateway", ObjectKind.POLICY), "p_1");
  });

  test("a name that several have is asked back, and not guessed", async () => {
    await assert.rejects(find("gateway"), {
      code: "usage",
      message: "gateway is ambiguous: sentinel/s_1, policy/p_1; use the id",
    });
  });

  test("an unknown object is reported with those that exist", async () => {
    await assert.rejects(find("none", ObjectKind.SENTINEL), {
      code: "not_found",
      message: "no sentinel none in region local.test; there are sentinel/s_1",
    });
    await assert.rejects(findObject(adminOf([]), "none"), /no object none .*; the region has none/);
  });
});

test("a list is whole, however many pages it comes in", async () => {
  assert.deepEqual(idsOf(await listObjects(adminOf(objects))), ["d_1", "d_2", "web", "s_1", "p_1"]);
  assert.deepEqual(idsOf(await listObjects(adminOf(objects), { kind: ObjectKind.POLICY })), ["p_1"]);
});
