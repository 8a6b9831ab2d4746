import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineError } from "../concurrency/abort.ts";
import { CircuitOpenError } from "../concurrency/circuit-breaker.ts";
import { type ControlPlaneCode, ControlPlaneError } from "../control-plane/error.ts";
import { KubeApiError, type KubeErrorCode } from "../kube/errors.ts";
import { classifyFailure, classifyProblems, classifyReport, saysNo, speaksOfHealth } from "./classify.ts";

function refused(status: number, facts: object = {}): KubeApiError {
  return new KubeApiError("refused", `${status}`, { status, ...facts });
}

test("each status has its class", () => {
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

test("a refusal of one request is told from a server that has no answer for any", () => {
  for (const status of [400, 403, 404, 409, 422]) assert.ok(saysNo(refused(status)), String(status));
  for (const status of [429, 500, 503]) assert.ok(!saysNo(refused(status)), String(status));
  for (const error of [new KubeApiError("network", "gone"), new DeadlineError(10), new Error("a bug")])
    assert.ok(!saysNo(error), error.message);
});

test("what was no answer is tried again, and what was not even sent is not", () => {
  const classes: Readonly<Record<Exclude<KubeErrorCode, "refused">, string>> = {
    network: "retry",
    timeout: "retry",
    "too-large": "retry",
    malformed: "retry",
    "invalid-name": "rejected",
    credentials: "slow",
  };
  for (const [code, kind] of Object.entries(classes))
    assert.equal(classifyFailure(new KubeApiError(code as KubeErrorCode, code))?.kind, kind, code);
  assert.equal(classifyFailure(new DeadlineError(5))?.kind, "retry");
});

test("a hint of the server is kept within its limits, and the field that it names is told", () => {
  assert.equal(classifyFailure(refused(429, { retryAfterMs: 5 }))?.atLeastMs, 1_000);
  assert.equal(classifyFailure(refused(429, { retryAfterMs: 86_400_000 }))?.atLeastMs, 60_000);
  const failure = classifyFailure(refused(422, { causes: [{ field: "spec.replicas" }] }));
  assert.equal(failure?.fieldPath, "spec.replicas");
});

test("an object that was made anew under its name is looked at again, not parked", () => {
  assert.equal(classifyFailure(refused(422, { causes: [{ field: "metadata.uid" }] }))?.kind, "retry");
});

test("a bug is not taken for an answer", () => {
  assert.equal(classifyFailure(new TypeError("x is not a function")), undefined);
  assert.equal(classifyReport(new TypeError("x is not a function"), "update"), undefined);
});

test("our own validation names all problems and the first field", () => {
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

test("a report is refused for good, delivered in effect, or due again", () => {
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

test("only what speaks of the control plane's health counts for the breaker", () => {
  const counting = ["unavailable", "deadline_exceeded", "internal", "unknown"] as const;
  for (const code of counting) assert.ok(speaksOfHealth(new ControlPlaneError(code, code)), code);
  for (const code of ["not_found", "invalid_argument", "unauthenticated", "canceled"] as const)
    assert.ok(!speaksOfHealth(new ControlPlaneError(code, code)), code);
  assert.ok(!speaksOfHealth(new Error("aborted")));
});
