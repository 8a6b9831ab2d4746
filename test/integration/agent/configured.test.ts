// What stands in the configuration reaches the cluster and the wire.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { ObjectStatus_Outcome } from "../../../src/gen/krane/v1/agent_pb.ts";
import { replicaSets, secrets } from "../../../src/kube/resources.ts";
import { createControlPlaneServer } from "../../../src/server/control-plane-server.ts";
import { applyDeployment, utf8 } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { token } from "../server/served-control-plane.ts";
import { agentClient, createAgentWorld, region } from "./agent-world.ts";

const never = new AbortController().signal;

describe("the configuration of an agent", () => {
  test("its registry, its audience and its endpoint are in what it writes", async (t) => {
    const { admin, cluster, startAgent } = await createAgentWorld(t);
    await startAgent(`[registry]
url = "registry.example"
username = "puller"
password = "not-a-real-password"
[secrets]
audience = "krane-of-the-test"
endpoint = "http://krane.krane.svc:8070"
`);
    const encryptedEnvironmentVariables = utf8(JSON.stringify({ secrets: { NAME: "ciphertext" } }));
    await admin.setDeployment(region, applyDeployment({ encryptedEnvironmentVariables }));
    const set = await eventually("it is there", async () => {
      const found = await cluster.api.get(replicaSets, { namespace: "acme", name: "web" }, {}, never);
      return found ?? assert.fail("there is no ReplicaSet");
    });
    const pod = JSON.stringify(set.spec?.template?.spec);
    assert.match(pod, /"imagePullSecrets":\[\{"name":"krane-registry"\}\]/);
    assert.match(pod, /"audience":"krane-of-the-test"/);
    assert.match(pod, /"value":"http:\/\/krane\.krane\.svc:8070"/);
    const secret = await cluster.api.get(secrets, { namespace: "acme", name: "krane-registry" }, {}, never);
    const login = Buffer.from(secret?.data?.[".dockerconfigjson"] ?? "", "base64").toString("utf8");
    assert.match(login, /"registry\.example":.*"not-a-real-password"/);
  });

  test("an image of a registry that is not allowed is parked with its reason", async (t) => {
    const { admin, startAgent } = await createAgentWorld(t);
    const { url } = await startAgent('[isolation]\nregistries = ["registry.other"]\n');
    await admin.setDeployment(region, applyDeployment());
    const client = agentClient(t, url);
    await eventually("it is parked", async () => {
      const { objects } = await client.listObjects({ onlyTroubled: true });
      assert.equal(objects[0]?.outcome, ObjectStatus_Outcome.PARKED);
      assert.match(objects[0].fieldPath ?? "", /image/);
    });
  });

  test("the control plane is reached over TLS with the configured CA, and the token in its file", async (t) => {
    const world = await createAgentWorld(t);
    const folder = fileURLToPath(new URL("../../../testdata/tls/", import.meta.url));
    const [certFile, keyFile] = [`${folder}first.cert.pem`, `${folder}first.key.pem`];
    const server = createControlPlaneServer(
      world,
      { port: 0, tls: { certFile, keyFile } },
      { clock: createSystemClock(), log: createQuietLog(), readTextFile: (path) => readFile(path, "utf8") },
    );
    const secure = await server.start(never);
    t.after(() => secure.close(AbortSignal.abort()));
    await world.startAgent("", {
      control: `url = "${secure.url}"\nca_file = "ca.pem"\ntoken_file = "token"`,
      files: { "ca.pem": await readFile(certFile, "utf8"), token: `${token}\n` },
    });
    await world.admin.setDeployment(region, applyDeployment({ deploymentId: "d_1" }));
    await eventually("it is reported", async () =>
      assert.equal((await world.admin.instances(region, "d_1")).length, 1),
    );
  });
});
