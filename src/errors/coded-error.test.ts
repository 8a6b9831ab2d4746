import assert from "node:assert/strict";
import { test } from "node:test";
import { CodedError } from "./coded-error.ts";

class Sample extends CodedError<"AgentError"> {
  override readonly name = "AgentError";
}

test("an error has its code, its message and its cause", () => {
  const cause = new Error("no such file");
  const error = new Sample("file_unusable", "tls.cert_file: cannot read c.pem", { cause });
  assert.ok(error instanceof Error);
  assert.equal(String(error), "AgentError: tls.cert_file: cannot read c.pem");
  assert.deepEqual([error.name, error.code, error.cause], ["AgentError", "file_unusable", cause]);
});

test("an error without a cause has no cause property", () => {
  for (const options of [undefined, {}, { cause: undefined }])
    assert.ok(!("cause" in new Sample("start_failed", "starting", options)));
});

test("a class accepts only its own codes of the catalogue", () => {
  // @ts-expect-error the code of another class
  const error = new Sample("port_in_use", "rpc_port: in use");
  assert.ok(error instanceof Sample);
});
