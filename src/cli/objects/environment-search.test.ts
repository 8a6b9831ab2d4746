import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Admin } from "../admin/admin-access.ts";
import { findEnvironment, listEnvironments } from "./environment-search.ts";

const region = "local.test";

function adminOf(pages: readonly (readonly string[])[]): Admin {
  const transport = createRouterTransport(({ service }) =>
    service(AdminService, {
      listEnvironments({ pageToken, pageSize }) {
        assert.ok(pageSize > 0);
        const index = Number(pageToken);
        return {
          environments: (pages[index] ?? []).map((id) => ({ id })),
          nextPageToken: index + 1 < pages.length ? `${index + 1}` : "",
        };
      },
    }),
  );
  const client = createClient(AdminService, transport);
  return { client, region, signal: new AbortController().signal } as Admin;
}

const pages = [["env_1", "env_2"], [], ["env_3"]];

test("environments of all pages are one list", async () => {
  const environments = await listEnvironments(adminOf(pages), region);
  assert.deepEqual(
    environments.map(({ id }) => id),
    ["env_1", "env_2", "env_3"],
  );
});

test("one is found on any page, and a missing one names those that there are", async () => {
  assert.equal((await findEnvironment(adminOf(pages), "env_3")).id, "env_3");
  await assert.rejects(findEnvironment(adminOf(pages), "env_4"), {
    code: "not_found",
    message: `no environment env_4 in region ${region}; there are env_1, env_2, env_3; create one with a document of kind Environment`,
  });
  await assert.rejects(findEnvironment(adminOf([[]]), "env_4"), /the region has no environments;/);
});
