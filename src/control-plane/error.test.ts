import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inspect } from "node:util";
import { toBinary } from "@bufbuild/protobuf";
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import { DurationSchema, durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { DeadlineError } from "../concurrency/abort.ts";
import { ConfigError } from "../config/error.ts";
import { ControlPlaneError, controlPlaneError } from "./error.ts";

const asIs = (text: string) => text;
const answered = { "content-type": "application/json" };

function retryInfo(delayMs: number) {
  const delay = toBinary(DurationSchema, durationFromMs(delayMs));
  const value = new BinaryWriter()
    .uint32((1 << 3) | 2)
    .bytes(delay)
    .finish();
  return { type: "google.rpc.RetryInfo", value };
}

describe("the code of a control-plane error", () => {
  test("is the server's code if the server responded", () => {
    for (const [code, name] of [
      [Code.NotFound, "not_found"],
      [Code.InvalidArgument, "invalid_argument"],
      [Code.OutOfRange, "out_of_range"],
      [Code.Canceled, "canceled"],
    ] as const) {
      const error = controlPlaneError("Op", new ConnectError("why", code, answered), asIs);
      assert.deepEqual([error.code, error.message], [name, `Op: ${name}: why`]);
    }
  });

  test("never blames the request if the server did not respond", () => {
    for (const [code, name] of [
      [Code.InvalidArgument, "internal"],
      [Code.Internal, "internal"],
      [Code.NotFound, "unavailable"],
      [Code.FailedPrecondition, "unavailable"],
      [Code.Canceled, "unavailable"],
      [Code.Aborted, "unavailable"],
      [Code.ResourceExhausted, "resource_exhausted"],
    ] as const)
      assert.equal(controlPlaneError("Op", new ConnectError("broken", code), asIs).code, name, Code[code]);
  });

  test("distinguishes a failed connection from an invalid response", () => {
    const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
    const error = controlPlaneError("Op", ConnectError.from(reset, Code.Internal), asIs);
    assert.deepEqual([error.code, error.cause], ["unavailable", reset]);
  });

  test("comes with how far the call came", () => {
    const failed = (code: string) =>
      controlPlaneError(
        "Op",
        ConnectError.from(Object.assign(new Error(code), { code }), Code.Unavailable),
        asIs,
      ).reach;
    for (const code of ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]) assert.equal(failed(code), "unreachable");
    for (const code of ["ECONNRESET", "ETIMEDOUT", "CERT_HAS_EXPIRED"]) assert.equal(failed(code), "broken");
    const refusal = new ConnectError("why", Code.Unauthenticated, answered);
    assert.equal(controlPlaneError("Op", refusal, asIs).reach, "answered");
  });

  test("is deadline_exceeded for our own deadline, and unauthenticated without a token to send", () => {
    assert.equal(controlPlaneError("Op", new DeadlineError(5), asIs).code, "deadline_exceeded");
    const unread = new ConfigError("secret_unreadable", "control.token_file", "cannot read");
    assert.equal(controlPlaneError("Op", unread, asIs).code, "unauthenticated");
  });
});

test("a retry hint is read from RetryInfo and from Retry-After, and clamped to 1 to 60 s", () => {
  const hint = (details: ConnectError["details"], header: Record<string, string> = {}) => {
    const error = new ConnectError("busy", Code.Unavailable, { ...answered, ...header });
    error.details = details;
    return controlPlaneError("Op", error, asIs).retryAfterMs;
  };
  assert.equal(hint([retryInfo(7_500)]), 7_500);
  assert.equal(hint([retryInfo(1)]), 1_000);
  assert.equal(hint([retryInfo(-5_000)]), 1_000);
  assert.equal(hint([retryInfo(86_400_000)]), 60_000);
  assert.equal(hint([], { "retry-after": "12" }), 12_000);
  assert.equal(hint([], { "retry-after": "12, 12" }), 12_000);
  assert.equal(hint([], { "retry-after": "999999999" }), 60_000);
  assert.equal(hint([], { "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }), undefined);
  assert.equal(hint([]), undefined);
  // The server's own hint overrides the proxy's.
  assert.equal(hint([retryInfo(3_000)], { "retry-after": "30" }), 3_000);
});

test("a retry hint of random bytes changes nothing but the hint", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (value) => {
      const error = new ConnectError("busy", Code.Unavailable, answered);
      error.details = [{ type: "google.rpc.RetryInfo", value }];
      const { code, retryAfterMs } = controlPlaneError("Op", error, asIs);
      assert.equal(code, "unavailable");
      assert.ok(retryAfterMs === undefined || (retryAfterMs >= 1_000 && retryAfterMs <= 60_000));
    }),
  );
});

test("text from the server is redacted in message, stack and cause", () => {
  const secret = "krane_canary";
  const metadata = { ...answered, "x-echo": secret };
  const quoting = new ConnectError(`token ${secret} is wrong`, Code.Unauthenticated, metadata);
  const error = controlPlaneError("Op", quoting, (text) => text.replaceAll(secret, "[redacted]"));
  assert.equal(error.message, "Op: unauthenticated: token [redacted] is wrong");
  assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /canary/);
});

test("a long message is cut", () => {
  const page = new ConnectError("x".repeat(100_000), Code.Unknown, answered);
  assert.ok(controlPlaneError("Op", page, asIs).message.length < 600);
});

test("a ControlPlaneError is passed on unchanged", () => {
  const error = new ControlPlaneError("canceled", "closed");
  assert.equal(controlPlaneError("Op", error, asIs), error);
});
