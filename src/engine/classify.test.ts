import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineError } from "../concurrency/abort.ts";
import { CircuitOpenError } from "../concurrency/circuit-breaker.ts";
import { type ControlPlaneCode, ControlPlaneError } from "../control-plane/error.ts";
import { KubeApiError, type KubeErrorCode } from "../kube/errors.ts";
import { classifyFailure, classifyProblems, classifyReport, isOutage, isRefusal } from "./classify.ts";

function refused(status: number, facts: object = {}): KubeApiError {
  return new KubeApiError("refused", `${status}`, { status, ...facts });
}

test("every HTTP status has a failure class", () => {
  const classes: Readonly<Record<number, string>> = {
    400: "rejected",
    413: "rejected",
    422: "rejected",
    401: "slow",
    403: "slow",
    404: "slow",
    405: "slow",
    408: "retry",
    409: "retry",
    410: "retry",
    429: "retry",
    500: "retry",
    503: "retry",
    504: "retry",
  };
  for (const [status, kind] of Object.entries(classes))
    assert.equal(classifyFailure(refused(Number(status)))?.kind, kind, status);
});

test("a refusal of one request is distinguished from an unhealthy server", () => {
  for (const status of [400, 403, 404, 409, 422]) assert.ok(isRefusal(refused(status)), String(status));
  for (const status of [429, 500, 503]) assert.ok(!isRefusal(refused(status)), String(status));
  for (const error of [new KubeApiError("network", "gone"), new DeadlineError(10), new Error("a bug")])
    assert.ok(!isRefusal(error), error.message);
});

test("a request without a response is retried, one that could never be sent is not", () => {
  const classes: Readonly<Record<Exclude<KubeErrorCode, "refused">, string>> = {
    network: "retry",
    timeout: "retry",
    "too-large": "retry",
    malformed: "retry",
    "no-lease": "retry",
    "invalid-name": "rejected",
    credentials: "slow",
  };
  for (const [code, kind] of Object.entries(classes))
    assert.equal(classifyFailure(new KubeApiError(code as KubeErrorCode, code))?.kind, kind, code);
  assert.equal(classifyFailure(new DeadlineError(5))?.kind, "retry");
});

test("Retry-After is clamped, and the field that the server names is kept", () => {
  assert.equal(classifyFailure(refused(429, { retryAfterMs: 5 }))?.atLeastMs, 1_000);
  assert.equal(classifyFailure(refused(429, { retryAfterMs: 86_400_000 }))?.atLeastMs, 60_000);
  const failure = classifyFailure(refused(422, { causes: [{ field: "spec.replicas" }] }));
  assert.equal(failure?.fieldPath, "spec.replicas");
});

test("an object that was recreated under its name is retried, not parked", () => {
  assert.equal(classifyFailure(refused(422, { causes: [{ field: "metadata.uid" }] }))?.kind, "retry");
});

test("an internal error is not classified", () => {
  assert.equal(classifyFailure(new TypeError("x is not a function")), undefined);
  assert.equal(classifyReport(new TypeError("x is not a function"), "update"), undefined);
});

test("validation problems are all listed, with the path of the first", () => {
  const failure = classifyProblems([
    { path: "port", message: "must be from 1 to 65535" },
    { path: "image", message: "is required" },
  ]);
  assert.deepEqual(failure, {
    kind: "rejected",
    reason: "port must be from 1 to 65535; image is required",
    fieldPath: "port",
  });
});

test("a failed report is rejected, counted as delivered, or retried", () => {
  const kindOf = (code: ControlPlaneCode, change: "update" | "delete") =>
    classifyReport(new ControlPlaneError(code, code), change)?.kind;
  assert.equal(kindOf("not_found", "update"), "refused");
  assert.equal(kindOf("invalid_argument", "update"), "refused");
  assert.equal(kindOf("invalid_argument", "delete"), "refused");
  assert.equal(kindOf("not_found", "delete"), "delivered");
  assert.equal(kindOf("unknown", "delete"), "delivered");
  for (const code of ["unknown", "unavailable", "unauthenticated", "deadline_exceeded", "internal"] as const)
    assert.equal(kindOf(code, "update"), "retry", code);
  const open = new CircuitOpenError("reports", "tripped", 4_321);
  assert.deepEqual(classifyReport(open, "update"), { kind: "retry", atLeastMs: 4_321 });
});

test("only errors that mean an unhealthy control plane count for the breaker", () => {
  const counting = ["unavailable", "deadline_exceeded", "internal", "unknown"] as const;
  for (const code of counting) assert.ok(isOutage(new ControlPlaneError(code, code)), code);
  for (const code of ["not_found", "invalid_argument", "unauthenticated", "canceled"] as const)
    assert.ok(!isOutage(new ControlPlaneError(code, code)), code);
  assert.ok(!isOutage(new Error("aborted")));
});
