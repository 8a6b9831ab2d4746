// `krane logs` on a real API server with RBAC: what the agent's service account may read, with the chart's option and
// without it. The nodes are kwok's.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { parse, startedAgent } from "../integration/agent/agent-world.ts";
import { startAdminServer } from "../support/admin-server.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights } from "../support/deployed-rights.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { FakeIo } from "../support/fake-io.ts";
import { freePort } from "../support/krane-process.ts";

const cluster = clusterUnderTest();
after(() => cluster.empty());

test("the agent reads logs only with the chart's option, and says so", async (t) => {
  await cluster.empty();
  const without = await installRights(cluster, ["agent"]);
  t.after(() => without.remove());
  const server = await startAdminServer();
  t.after(() => server.stop());
  const config = parse(`region = "local.dev"
rpc_port = ${await freePort()}
[control]
url = "${server.url}"
token = "${server.tokens.agent}"
[kubernetes]
kubeconfig = "kubeconfig"
[logs]
enabled = true`);
  const { readTextFile } = await import("../../src/cli/process/text-file.ts");
  const kubeconfig = await readTextFile(without.kubeconfigPath, new AbortController().signal);
  await startedAgent(t, config, { kubeconfig });
  await server.admin.setDeployment("local.dev", applyDeployment({ deploymentId: "d_web", replicas: 1 }));
  await eventually("its pod is reported", async () =>
    assert.equal((await server.admin.instances("local.dev", "d_web")).length, 1),
  );
  const logs = async () => {
    const io = new FakeIo();
    const env = { KRANE_SERVER: server.url, KRANE_TOKEN: server.tokens.logs, KRANE_REGION: "local.dev" };
    return { code: await main(["logs", "web"], env, io), stderr: io.stderr.text };
  };
  const refused = await logs();
  assert.equal(refused.code, 77, refused.stderr);
  assert.match(refused.stderr, /may not get pods\/log in this cluster; set agent\.logs\.enabled=true/);

  const granted = await installRights(cluster, ["agent", "logs"]);
  t.after(() => granted.remove());
  const allowed = await logs();
  // Nobody answers for the kubelet of a node that is kwok's: the right is there, and the log is not.
  assert.equal(allowed.code, 1, allowed.stderr);
  assert.match(allowed.stderr, /pod web-\w+: the log cannot be read: logs of pod acme\/web-\w+: [45]\d\d/);
  assert.doesNotMatch(allowed.stderr, /agent\.logs\.enabled/);
});
