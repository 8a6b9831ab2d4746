// Sessions of browsers on two servers with one PostgreSQL: made on one, they hold and end on both.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { AdminService } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { type OpenDatabase, openDatabase } from "../../store/store-target.ts";
import { eventually } from "../../support/eventually.ts";
import { type RunningServer, startServer } from "../../support/running-server.ts";

const tokens = { ann: "token-of-ann-may-write", bob: "token-of-bob-may-read" } as const;
let target: OpenDatabase;
let folder = "";
let first: RunningServer;
let second: RunningServer;

before(async () => {
  target = await openDatabase();
  folder = await mkdtemp(join(tmpdir(), "krane-sessions-"));
  const flags = {
    "database-url": target.url,
    "agent-tokens": "local.dev token-of-the-agents",
    "admin-tokens-file": join(folder, "people"),
    listen: "127.0.0.1:0",
  };
  await people(tokens.ann);
  const createToken = () => randomBytes(24).toString("hex");
  [first, second] = await Promise.all([
    startServer(flags, {}, { createToken }),
    startServer(flags, {}, { createToken }),
  ]);
});
after(async () => {
  await Promise.all([first.stop(), second.stop()]);
  await target.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => people(tokens.ann));

/** Writes the list of tokens, with this one for Ann. */
function people(ofAnn: string, role = "read-write"): Promise<void> {
  return writeFile(join(folder, "people"), `ann ${role} ${ofAnn}\nbob read-only ${tokens.bob}\n`);
}

async function call(server: RunningServer, method: string, headers: object, message: object = {}) {
  const response = await fetch(`http://127.0.0.1:${server.port}/${AdminService.typeName}/${method}`, {
    method: "POST",
    headers: { "content-type": "application/json", "sec-fetch-site": "same-origin", ...headers },
    body: JSON.stringify(message),
  });
  const body = (await response.json()) as { readonly code?: string };
  return { code: body.code ?? "ok", cookie: response.headers.getSetCookie()[0]?.split(";")[0] ?? "" };
}

async function signIn(
  server: RunningServer,
  token: string = tokens.ann,
): Promise<{ readonly cookie: string }> {
  const { code, cookie } = await call(server, "CreateSession", { authorization: `Bearer ${token}` });
  assert.equal(code, "ok");
  return { cookie };
}

const codes = async (session: object) =>
  Promise.all([first, second].map(async (server) => (await call(server, "GetSession", session)).code));

test("a session that was made on one server holds on the other, and ends on both", async () => {
  const session = await signIn(first);
  assert.deepEqual(await codes(session), ["ok", "ok"]);
  assert.equal((await call(second, "EndSession", session)).code, "ok");
  assert.deepEqual(await codes(session), ["unauthenticated", "unauthenticated"]);
});

test("signing out everywhere ends the sessions of one name on both servers, and no others", async () => {
  const sessions = [await signIn(first), await signIn(second)];
  const ofBob = await signIn(first, tokens.bob);
  assert.equal((await call(second, "EndSession", sessions[0] ?? {}, { all: true })).code, "ok");
  for (const session of sessions)
    assert.deepEqual(await codes(session), ["unauthenticated", "unauthenticated"]);
  assert.deepEqual(await codes(ofBob), ["ok", "ok"]);
});

test("a session is gone on both servers when its token rotates, and loses a right when the token does", async () => {
  const [session, ofBob] = [await signIn(first), await signIn(second, tokens.bob)];
  const change = async () =>
    Promise.all([first, second].map(async (server) => (await call(server, "DeleteObject", session)).code));
  await people(tokens.ann, "read-only");
  await eventually("the right is gone", async () =>
    assert.deepEqual(await change(), ["permission_denied", "permission_denied"]),
  );
  await people("another-token-of-ann");
  await eventually("the session is gone", async () =>
    assert.deepEqual(await codes(session), ["unauthenticated", "unauthenticated"]),
  );
  assert.deepEqual(await codes(ofBob), ["ok", "ok"]);
});

test("each server limits the attempts of an address by itself", async () => {
  const guess = async (server: RunningServer) =>
    (await call(server, "CreateSession", { authorization: "Bearer not-the-right-token" })).code;
  const untilLimited = async (server: RunningServer) => {
    for (let count = 1; count <= 30; count += 1) if ((await guess(server)) === "resource_exhausted") return;
    assert.fail("never limited");
  };
  await untilLimited(first);
  assert.equal(await guess(second), "unauthenticated");
  await untilLimited(second);
});
