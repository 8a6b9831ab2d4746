import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  Code,
  ConnectError,
  createClient,
  createRouterTransport,
  type Interceptor,
} from "@connectrpc/connect";
import { Secret } from "../config/secret.ts";
import { AgentService } from "../gen/krane/v1/agent_pb.ts";
import { createBearerAuth, createRotatingBearerAuth } from "./bearer-auth.ts";

async function callThrough(auth: Interceptor, authorization?: string): Promise<void> {
  const send: Interceptor = (next) => (request) => {
    if (authorization !== undefined) request.header.set("authorization", authorization);
    return next(request);
  };
  const transport = createRouterTransport(
    ({ service }) => void service(AgentService, { getStatus: () => ({}) }, { interceptors: [auth] }),
    { transport: { interceptors: [send] } },
  );
  await createClient(AgentService, transport).getStatus({});
}

const callWith = (tokens: readonly string[], authorization?: string) =>
  callThrough(createBearerAuth(tokens.map((text) => new Secret(text))), authorization);

const isUnauthenticated = (error: unknown) =>
  error instanceof ConnectError && error.code === Code.Unauthenticated;

describe("bearer tokens", () => {
  test("any of the tokens is accepted, so that tokens can rotate without a gap", async () => {
    await callWith(["old", "new"], "Bearer old");
    await callWith(["old", "new"], "Bearer new");
    await assert.rejects(callWith(["new"], "Bearer old"), isUnauthenticated);
  });

  test("everything else is rejected: no header, another scheme, a part of the token or more than it", async () => {
    for (const header of [
      undefined,
      "",
      "Bearer",
      "Bearer ",
      "Basic token",
      "token",
      "Bearer tok",
      "Bearer token2",
    ])
      await assert.rejects(callWith(["token"], header), isUnauthenticated, String(header));
  });

  test("without tokens every call is rejected, even one with an empty token", async () => {
    await assert.rejects(callWith([], "Bearer "), isUnauthenticated);
    await assert.rejects(callWith([], "Bearer x"), isUnauthenticated);
  });

  test("an empty token is refused at construction", () => {
    assert.throws(() => createBearerAuth([new Secret("")]), TypeError);
  });
});

describe("a token that rotates", () => {
  test("the current value is accepted, and the previous one no longer", async () => {
    let value = "first";
    const auth = createRotatingBearerAuth({
      current: async () => new Secret(value),
      refresh: () => undefined,
    });
    await callThrough(auth, "Bearer first");
    value = "second";
    await callThrough(auth, "Bearer second");
    await assert.rejects(callThrough(auth, "Bearer first"), isUnauthenticated);
  });

  test("an empty token rejects every call", async () => {
    const auth = createRotatingBearerAuth({ current: async () => new Secret(""), refresh: () => undefined });
    await assert.rejects(callThrough(auth, "Bearer "));
  });
});
