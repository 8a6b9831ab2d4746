import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { createRecordedLog } from "../../../test/support/recorded-log.ts";
import { AgentError } from "../../agent/agent-error.ts";
import { KubeApiError } from "../../kube/errors.ts";
import { runUntilStopped } from "./stop-request.ts";

async function logged(error: Error) {
  const { log, lines } = createRecordedLog();
  const run = () => Promise.reject(error);
  await assert.rejects(
    runUntilStopped(new FakeIo(), async () => ({ log, run })),
    error,
  );
  return lines.map(({ msg, error: described }) => ({ msg, error: described }));
}

test("an expected failure, such as a missing kubeconfig, is logged with its causes and without stacks", async () => {
  const cause = new KubeApiError("credentials", "no kubeconfig found at /no/such");
  const missing = new AgentError("cluster_unknown", "KUBECONFIG: no kubeconfig found at /no/such", { cause });
  const described = {
    type: "AgentError",
    message: "KUBECONFIG: no kubeconfig found at /no/such",
    code: "cluster_unknown",
    cause: { type: "KubeApiError", message: "no kubeconfig found at /no/such", code: "credentials" },
  };
  assert.deepEqual(await logged(missing), [{ msg: "krane failed", error: described }]);
  assert.deepEqual(await logged(new AggregateError([missing], "two")), [
    { msg: "krane failed", error: { type: "AggregateError", message: "two", errors: [described] } },
  ]);
});

test("a bug is logged with its stack", async () => {
  const [line] = await logged(new TypeError("not a function"));
  assert.match(JSON.stringify(line), /"stack":"at /);
});
