import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { AgentError } from "../agent/agent-error.ts";
import { ConfigError } from "../config/error.ts";
import type { ErrorCode } from "../errors/error-catalogue.ts";
import { ServiceError } from "../http/service-error.ts";
import { RuntimeError } from "../runtime/runtime-error.ts";
import { EmbeddedError } from "../server/embedded/embedded-error.ts";
import { CommandError, type CommandErrorCode } from "./command-error.ts";
import { renderErrors } from "./error-text.ts";
import { ExecError } from "./exec/exec-error.ts";
import { exitCodeOf } from "./exit-codes.ts";

const portInUse = new ServiceError("port_in_use", "rpc_port: port 8070 is already in use");
const badFile = new AgentError("file_unusable", "tls.cert_file: cannot read c.pem");
const bug = new TypeError("x is not a function");

describe("the exit code of a failure", () => {
  test("is 1 for what the outside did, 78 for the configuration, 70 for a bug", () => {
    assert.equal(exitCodeOf(portInUse), 1);
    assert.equal(exitCodeOf(new RuntimeError("stop_timed_out", "stopping a: not finished after 30 s")), 1);
    assert.equal(exitCodeOf(new AgentError("start_failed", "Kubernetes at https://a: no answer")), 1);
    assert.equal(exitCodeOf(badFile), 78);
    assert.equal(exitCodeOf(new AgentError("cluster_unknown", "no Kubernetes cluster configured")), 78);
    assert.equal(exitCodeOf(new ConfigError("secret_unreadable", "control.token_file", "cannot read")), 78);
    assert.equal(exitCodeOf(new ServiceError("certificate_unusable", "tls.cert_file: bad")), 78);
    assert.equal(exitCodeOf(bug), 70);
    assert.equal(exitCodeOf("thrown text"), 70);
    assert.equal(exitCodeOf(assertionError()), 70);
  });

  test("is its own for what scripts and shells tell apart", () => {
    const ofCommand = (code: CommandErrorCode) => exitCodeOf(new CommandError(code, code));
    assert.deepEqual(
      (["failed", "not_found", "usage", "unreachable", "denied", "config"] as const).map(ofCommand),
      [1, 3, 64, 69, 77, 78],
    );
    const ofExec = (code: ErrorCode<"ExecError">) => exitCodeOf(new ExecError(code, code));
    assert.deepEqual(
      (["refused", "setup_wrong", "command_unusable", "command_missing"] as const).map(ofExec),
      [1, 78, 126, 127],
    );
    assert.equal(exitCodeOf(new EmbeddedError("data_dir_unusable", "--data-dir: is not a folder")), 78);
    assert.equal(exitCodeOf(new EmbeddedError("data_dir_in_use", "--data-dir: another server")), 1);
  });

  test("sees through wrappers, and the worst of several causes counts", () => {
    const wrapped = new RuntimeError("stop_failed", "stopping a: x is not a function", { cause: bug });
    assert.equal(exitCodeOf(wrapped), 70);
    const nested = new RuntimeError("task_failed", "agent: 2 causes", {
      cause: new AggregateError([portInUse, wrapped]),
    });
    assert.equal(exitCodeOf(nested), 70);
    assert.equal(exitCodeOf(new AggregateError([badFile, badFile])), 78);
    assert.equal(exitCodeOf(new AggregateError([badFile, portInUse])), 1);
    assert.equal(exitCodeOf(new AggregateError([portInUse, new AggregateError([wrapped])])), 70);
  });
});

describe("the text of a failure", () => {
  test("has one line per cause, and a stack only for a bug", () => {
    const text = renderErrors(new AggregateError([portInUse, badFile]));
    assert.equal(text, `krane: ${portInUse.message}\nkrane: ${badFile.message}\n`);
    assert.match(renderErrors(bug), /bug in krane.*TypeError: x is not a function\n\s+at /s);
  });

  test("shows no token that an error quotes", () => {
    assert.doesNotMatch(renderErrors(new Error("sent authorization: Bearer s3cr3t")), /s3cr3t/);
  });
});

function assertionError(): unknown {
  try {
    assert.ok(false);
  } catch (error) {
    return error;
  }
  return undefined;
}
