// Who may do what: no token opens more than it says.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { ClusterService } from "../../../src/gen/ctrl/v1/cluster_service_pb.ts";
import { AdminService, ObjectKind } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { methodEffects } from "../../../src/server/admin-service/admin-auth.ts";
import { createControlPlaneServer } from "../../../src/server/control-plane-server.ts";
import { type AdminServer, startAdminServer } from "../../support/admin-server.ts";
import { applyDeployment, environmentOf } from "../../support/deployment-messages.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { createTestPlane } from "../../support/store-admin.ts";

async function serve(t: TestContext): Promise<AdminServer> {
  const server = await startAdminServer({ regions: ["local.dev", "us-east-1.aws"] });
  t.after(() => server.stop());
  await server.client().applyEnvironment({ region: "local.dev", ...environmentOf() });
  return server;
}

interface Answer {
  readonly status: number;
  readonly code: string;
}

/** A unary call in JSON; of a stream, the code that it ends with. */
async function call(url: string, path: string, token: string, stream = false): Promise<Answer> {
  const message = new TextEncoder().encode("{}");
  const envelope = new Uint8Array([0, 0, 0, 0, message.length, ...message]);
  const response = await fetch(`${url}/${path}`, {
    method: "POST",
    headers: {
      "content-type": stream ? "application/connect+json" : "application/json",
      ...(token !== "" && { authorization: `Bearer ${token}` }),
    },
    body: stream ? envelope : message,
  });
  const text = stream ? await firstPart(response) : await response.text();
  const code = /"code":\s*"([a-z_]+)"/.exec(text)?.[1] ?? "";
  return { status: response.status, code };
}

/** Some streams do not end by themselves. */
async function firstPart({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const { value } = (await reader?.read()) ?? {};
  await reader?.cancel();
  return new TextDecoder().decode(value);
}

const adminMethods = Object.values(AdminService.method).map(({ name, localName, methodKind }) => ({
  localName: localName as keyof typeof methodEffects,
  path: `${AdminService.typeName}/${name}`,
  isStream: methodKind !== "unary",
}));

test("every call is listed as one that reads, one that writes or one that reads logs", () => {
  assert.deepEqual(Object.keys(methodEffects).sort(), adminMethods.map(({ localName }) => localName).sort());
  const writing = Object.keys(methodEffects).filter((name) =>
    /^(apply|scale|delete|release|pause|adopt|set|unset|join|grant|revoke)/.test(name),
  );
  for (const name of Object.keys(methodEffects) as (keyof typeof methodEffects)[]) {
    const effect = name === "streamLogs" ? "logs" : writing.includes(name) ? "writes" : "reads";
    assert.equal(methodEffects[name], effect, name);
  }
});

test("a token that may only read is refused by everything that writes, and by nothing else", async (t) => {
  const { url, tokens } = await serve(t);
  for (const { localName, path, isStream } of adminMethods) {
    const { code } = await call(url, path, tokens.readOnly, isStream);
    const isRefused = code === "permission_denied";
    assert.equal(isRefused, methodEffects[localName] !== "reads", `${localName}: ${code}`);
  }
});

test("a token for logs reads everything and logs, and writes nothing", async (t) => {
  const { url, tokens } = await serve(t);
  for (const { localName, path, isStream } of adminMethods) {
    const { code } = await call(url, path, tokens.logs, isStream);
    assert.equal(
      code === "permission_denied",
      methodEffects[localName] === "writes",
      `${localName}: ${code}`,
    );
  }
  const { code } = await call(url, "krane.admin.v1.AdminService/StreamLogs", tokens.readWrite, true);
  assert.equal(code, "permission_denied");
});

test("what may only read changes nothing although its request is right", async (t) => {
  const server = await serve(t);
  const reader = server.client(server.tokens.readOnly);
  const spec = { spec: { case: "deployment", value: applyDeployment() } } as const;
  await assert.rejects(reader.applyObject({ region: server.region, spec }), { code: Code.PermissionDenied });
  assert.deepEqual(await server.store.rows(server.region, "deployment"), []);
  await server.client().applyObject({ region: server.region, spec });
  const { objects } = await reader.listObjects({ region: server.region });
  assert.equal(objects.length, 1);
});

test("the token of an agent opens no admin call, and no admin token a call of the agents", async (t) => {
  const { url, tokens } = await serve(t);
  for (const { path, isStream } of adminMethods) {
    for (const token of ["", "never-heard-of-this-one", tokens.agent, `${tokens.readWrite}x`]) {
      assert.equal((await call(url, path, token, isStream)).code, "unauthenticated", `${path} ${token}`);
    }
  }
  for (const { name, methodKind } of Object.values(ClusterService.method)) {
    const path = `${ClusterService.typeName}/${name}`;
    for (const token of [tokens.readWrite, tokens.readOnly]) {
      assert.equal((await call(url, path, token, methodKind !== "unary")).code, "unauthenticated", path);
    }
  }
});

test("what is done stands in history with the name of the token", async (t) => {
  const server = await serve(t);
  const { region } = server;
  const spec = { spec: { case: "deployment", value: applyDeployment() } } as const;
  await server.client().applyObject({ region, spec });
  const { events } = await server.client(server.tokens.readOnly).listEvents({ region });
  assert.deepEqual(
    events.map(({ by, event, version, entry, ref }) => [by, event, version, entry, ref?.kind, ref?.id]),
    [
      ["ann", "set", 1n, 2n, ObjectKind.DEPLOYMENT, "d_1a2B3c4D"],
      ["ann", "set", 1n, 1n, ObjectKind.ENVIRONMENT, "env_1a2B3c4D"],
    ],
  );
});

test("without tokens there is no admin API", async (t) => {
  const deps = {
    clock: createSystemClock(),
    log: createQuietLog(),
    readTextFile: () => Promise.reject(new Error("no file is read")),
  };
  const plane = createTestPlane({ tokens: [new Secret("token-of-the-agents")] }, deps);
  const server = createControlPlaneServer(plane, { port: 0, host: "127.0.0.1" }, deps);
  const running = await server.start(new AbortController().signal);
  t.after(() => running.close());
  const transport = createConnectTransport({ baseUrl: running.url, httpVersion: "1.1" });
  await assert.rejects(createClient(AdminService, transport).listAgents({}), { code: Code.Unimplemented });
});
