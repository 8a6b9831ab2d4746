import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError, createContextValues, type Interceptor } from "@connectrpc/connect";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { AgentService } from "../gen/krane/v1/agent_pb.ts";
import { createAdmission, withPortHooks } from "./call-admission.ts";
import { createErrorInterceptor } from "./rpc-errors.ts";
import { CallGate } from "./rpc-routes.ts";

const { signal } = new AbortController();
const refused = new ConnectError("no", Code.PermissionDenied);
const mebibyte = 1024 * 1024;

function callWith(header: Readonly<Record<string, string>> = {}) {
  const values = createContextValues();
  const method = AgentService.method.getStatus;
  return { method, header: new Headers(header), peer: "10.0.0.1", values, signal };
}

describe("the gate of a service", () => {
  test("rejected calls take no room from admitted ones", async () => {
    const admission = createAdmission(({ header }) => {
      if (header.get("token") !== "good") throw refused;
    });
    const gate = new CallGate({ interceptors: [admission], messageBytesMax: 1 });
    for (let count = 0; count < 5_000; count++) assert.equal(await gate.pass(callWith()), refused);
    assert.ok(!((await gate.pass(callWith({ token: "good" }))) instanceof ConnectError));
  });

  test("a compressed call, or one that announces its size, is charged in advance", async () => {
    for (const header of [
      { "content-length": String(mebibyte) },
      { "content-encoding": "gzip" },
      { "grpc-encoding": "br" },
      { "connect-content-encoding": "gzip" },
    ]) {
      const gate = new CallGate({ interceptors: [], messageBytesMax: mebibyte });
      const answers = [];
      for (let count = 0; count < 8; count++) answers.push(await gate.pass(callWith(header)));
      const codes = answers.map((answer) => (answer instanceof ConnectError ? answer.code : "in"));
      assert.deepEqual(codes, [...Array(7).fill("in"), Code.ResourceExhausted], JSON.stringify(header));
    }
  });

  test("an uncompressed call of unknown size is charged little", async () => {
    const gate = new CallGate({ interceptors: [], messageBytesMax: mebibyte });
    for (let count = 0; count < 1_000; count++)
      for (const header of [{}, { "grpc-encoding": "identity" }])
        assert.ok(!((await gate.pass(callWith(header))) instanceof ConnectError));
  });

  test("every rejection is counted with the code that the client gets", async () => {
    const codes: Code[] = [];
    const counter = withPortHooks((next) => next, { onRefused: (_, { code }) => void codes.push(code) });
    const errors = createErrorInterceptor({ log: createQuietLog() });
    const failing = (error: unknown): Interceptor =>
      createAdmission(() => {
        throw error;
      });
    for (const error of [refused, new Error("a file that is not there")]) {
      const gate = new CallGate({ interceptors: [counter, errors, failing(error)], messageBytesMax: 1 });
      await gate.pass(callWith());
    }
    assert.deepEqual(codes, [Code.PermissionDenied, Code.Internal]);
  });

  test("an unexpected failure is thrown, not treated as a rejection", async () => {
    const failure = new Error("a bug");
    const admission = createAdmission(() => Promise.reject(failure));
    const gate = new CallGate({ interceptors: [admission], messageBytesMax: 1 });
    await assert.rejects(gate.pass(callWith()), failure);
  });
});
