import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { DeadlineError } from "../concurrency/abort.ts";
import { type ErrorCode, errorCatalogue } from "../errors/error-catalogue.ts";
import type { ErrorClassEntry } from "../errors/error-entry.ts";
import { KubeApiError } from "../kube/errors.ts";
import { VaultError } from "../vault/vault-error.ts";
import { callerError, failureOf } from "./secrets-decision.ts";

const { signal } = new AbortController();

const makers = {
  KubeApiError: (code: string) => new KubeApiError(code as ErrorCode<"KubeApiError">, code),
  VaultError: (code: string) => new VaultError(code as ErrorCode<"VaultError">, code),
  DeadlineError: () => new DeadlineError(5),
};

test("a pod gets the RPC code that the error catalogue promises for each failure", () => {
  for (const [name, make] of Object.entries(makers)) {
    const { codes }: ErrorClassEntry = errorCatalogue[name as keyof typeof makers];
    for (const [code, { rpc, rpcOfSecrets = rpc }] of Object.entries(codes)) {
      const promised = codeFromString(rpcOfSecrets ?? "");
      assert.equal(callerError(failureOf(make(code), signal)).code, promised, `${name} ${code}`);
    }
  }
  assert.equal(callerError(failureOf(new TypeError("a bug"), signal)).code, Code.Internal);
});
