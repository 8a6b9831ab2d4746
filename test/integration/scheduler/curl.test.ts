// Everything that the agent serves and that is asked and answered once, with nothing but curl.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Health } from "../../../src/gen/grpc/health/v1/health_pb.ts";
import { AgentService } from "../../../src/gen/krane/v1/agent_pb.ts";
import { SchedulerService } from "../../../src/gen/krane/v1/scheduler_pb.ts";
import { SecretsService } from "../../../src/gen/krane/v1/secrets_pb.ts";
import { callWithCurl, unaryPaths } from "../../support/curl.ts";
import { agentToken } from "../agent/agent-world.ts";
import {
  createSchedulerWorld,
  deploymentRequest,
  schedulerToken,
  sentinelRequest,
} from "./scheduler-world.ts";

const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";

interface Call {
  readonly path: string;
  readonly token?: string;
  readonly body?: object;
  /** The status, and the code of a refusal. */
  readonly answer: readonly [number, string?];
}

const { k8s_namespace, k8s_name } = deploymentRequest;
const sentinelRef = { k8s_namespace: sentinelRequest.k8s_namespace, k8s_name: sentinelRequest.k8s_name };
const scheduler = (method: string, body: object, ...answer: Call["answer"]): Call => {
  return { path: `${SchedulerService.typeName}/${method}`, token: schedulerToken, body, answer };
};
const agent = (method: string, body: object, ...answer: Call["answer"]): Call => {
  return { path: `${AgentService.typeName}/${method}`, token: agentToken, body, answer };
};

const calls: readonly Call[] = [
  scheduler("ApplyDeployment", deploymentRequest, 200),
  scheduler(
    "ScrapeOpenApiSchema",
    { namespace: k8s_namespace, name: k8s_name, path: "/openapi" },
    400,
    "failed_precondition",
  ),
  scheduler("DeleteDeployment", { k8s_namespace, k8s_name }, 200),
  scheduler("ApplySentinel", sentinelRequest, 200),
  scheduler("DeleteSentinel", sentinelRef, 200),
  agent("GetStatus", {}, 200),
  agent("ListObjects", {}, 200),
  agent("ListBlockedDeletions", {}, 200),
  agent("ListStrangers", {}, 200),
  agent(
    "AdoptObject",
    { controller: "deployments", kind: "apps/ReplicaSet", namespace: "acme", name: "none", uid: "u" },
    404,
    "not_found",
  ),
  agent("ReleaseDeletion", { controller: "deployments", key: "acme/none" }, 404, "not_found"),
  {
    path: `${SecretsService.typeName}/DecryptSecretsBlob`,
    body: { token: "nobody's" },
    answer: [401, "unauthenticated"],
  },
  { path: `${Health.typeName}/Check`, answer: [200] },
];

test("every call has an answer in JSON", async (t) => {
  const services = [SchedulerService, AgentService, SecretsService, Health];
  assert.deepEqual(calls.map(({ path }) => path).sort(), [...unaryPaths(...services)].sort());
  const folder = await mkdtemp(join(tmpdir(), "krane-curl-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const vault = `[vault]\nmaster_keys = ["${masterKey}"]\n[vault.file]\npath = "${folder}"\n`;
  const { agent: running } = await createSchedulerWorld(t, vault);
  for (const {
    path,
    answer: [status, code],
    ...call
  } of calls) {
    const { body, ...answer } = await callWithCurl(running.url, path, call);
    assert.deepEqual([path, answer.status, body["code"]], [path, status, code]);
  }
});
