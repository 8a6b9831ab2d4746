import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import { FieldProblemSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { commandErrorOf } from "./admin-refusal.ts";

const target = { url: "https://krane.example", context: undefined, tokenFrom: "KRANE_TOKEN" };
const token = "a-secret-token";

function answered(code: Code, message: string, problems: readonly { path: string; problem: string }[] = []) {
  const details = problems.map((value) => ({ desc: FieldProblemSchema, value }));
  return new ConnectError(message, code, { "content-type": "application/json" }, details);
}

const explained = (error: ConnectError) => {
  const { code, message } = commandErrorOf(error, target, token);
  return [code, message];
};

describe("a refused call in plain words", () => {
  test("shows neither the token nor what drives a terminal", () => {
    assert.deepEqual(explained(answered(Code.Internal, `bad ${token}\n\u001b[2J!`)), [
      "failed",
      "bad [redacted] [2J!",
    ]);
  });

  test("names each field on a line of its own", () => {
    const problems = [
      { path: "deployment.port", problem: "must be below 65536" },
      { path: "deployment.image", problem: "must not be empty" },
    ];
    assert.deepEqual(explained(answered(Code.InvalidArgument, "2 problems", problems)), [
      "failed",
      "deployment.port must be below 65536\ndeployment.image must not be empty",
    ]);
    assert.deepEqual(explained(answered(Code.InvalidArgument, "no")), ["failed", "no"]);
  });

  test("says by its code what kind of failure it is", () => {
    const codes = [
      [Code.NotFound, "not_found"],
      [Code.Unauthenticated, "denied"],
      [Code.PermissionDenied, "denied"],
      [Code.Aborted, "failed"],
      [Code.FailedPrecondition, "failed"],
      [Code.Unimplemented, "unreachable"],
      [Code.Unavailable, "unreachable"],
    ] as const;
    for (const [code, expected] of codes)
      assert.equal(explained(answered(code, "why"))[0], expected, Code[code]);
    assert.equal(
      explained(answered(Code.Internal, ""))[1],
      "the control plane rejected the request without a reason",
    );
  });

  test("says the remedy of the server once", () => {
    const readOnly = "the token bob is read-only; use one with the role read-write";
    assert.deepEqual(explained(answered(Code.PermissionDenied, readOnly)), ["denied", readOnly]);
    const stale = "it is at version 2, not at version 1; read it again";
    assert.deepEqual(explained(answered(Code.Aborted, stale)), [
      "failed",
      `${stale}, and pass its version with --if-version`,
    ]);
  });

  test("does not take what the library says for the word of the server", () => {
    assert.equal(explained(new ConnectError("broken", Code.NotFound))[0], "unreachable");
    assert.match(
      explained(new ConnectError("late", Code.DeadlineExceeded))[1] ?? "",
      /no response within 10 s/,
    );
    const untrusted = Object.assign(new Error("self-signed"), { code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    const error = new ConnectError("x", Code.Internal, undefined, undefined, untrusted);
    assert.match(explained(error)[1] ?? "", /untrusted certificate .*ca_file/);
  });
});
