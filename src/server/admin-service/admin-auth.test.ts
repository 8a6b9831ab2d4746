import assert from "node:assert/strict";
import { test } from "node:test";
import { Code, createClient, createRouterTransport } from "@connectrpc/connect";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { createQuietLog } from "../../../test/support/quiet-log.ts";
import { Secret } from "../../config/secret.ts";
import { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import { MemoryStore } from "../memory-store.ts";
import { createAdminApi } from "./admin-api.ts";

const anns = "token-of-ann-0001";
const bobs = "token-of-bob-0001";
const agents = "token-of-agents-1";

/** An admin API whose lists of tokens a test may rewrite. */
function serve() {
  const lists = { people: `ann read-write ${anns}\nbob read-only ${bobs}`, agents: `local.dev ${agents}` };
  const source = (list: keyof typeof lists) => ({
    current: async () => new Secret(lists[list]),
    refresh: () => undefined,
  });
  const api = createAdminApi(
    { store: new MemoryStore(), tokens: source("people"), agentTokens: source("agents") },
    { clock: new FakeClock(), log: createQuietLog() },
  );
  const client = createClient(
    AdminService,
    createRouterTransport((router) => api.routes(router)),
  );
  const call = (token: string) => client.listAgents({}, { headers: { authorization: `Bearer ${token}` } });
  return { lists, call };
}

const stranger = { code: Code.Unauthenticated };

test("a token that is added to the agents' list is no longer accepted by the admin API, and the others are", async () => {
  const { lists, call } = serve();
  await call(anns);
  lists.agents = `local.dev ${agents}\neu-west-1.aws ${anns}`;
  await assert.rejects(call(anns), stranger);
  await call(bobs);
  lists.agents = `local.dev ${agents}`;
  await call(anns);
});

test("a token of the agents that is given to a person as well opens nothing here", async () => {
  const { lists, call } = serve();
  await call(anns);
  lists.people = `eve read-write ${agents}\nann read-write ${anns}`;
  await assert.rejects(call(agents), stranger);
  await call(anns);
});
