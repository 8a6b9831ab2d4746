// `krane why` where the words are those of a real Kubernetes: what the embedded one can only be made to say.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createWhyRegion } from "../integration/why/why-world.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { applyDeployment } from "../support/deployment-messages.ts";

const cluster = clusterUnderTest();

before(() => cluster.empty());

/** JSON is YAML as well. */
const kubeconfig = JSON.stringify({
  apiVersion: "v1",
  kind: "Config",
  "current-context": "test",
  contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  clusters: [
    {
      name: "test",
      cluster: {
        server: cluster.serverUrl,
        "certificate-authority-data": Buffer.from(cluster.ca).toString("base64"),
      },
    },
  ],
  users: [{ name: "test", user: { token: cluster.adminToken } }],
});

test("quotas and pod security are told in the words of Kubernetes", async (t) => {
  const { admin, region, becauseOf, startAgent } = await createWhyRegion(t, kubeconfig);
  const fewPods = await cluster.freshNamespace(t);
  const noSets = await cluster.freshNamespace(t);
  const strict = await cluster.freshNamespace(t);
  await cluster.kubectl(["-n", fewPods, "create", "quota", "few", "--hard=pods=1"]);
  await cluster.kubectl(["-n", noSets, "create", "quota", "none", "--hard=count/replicasets.apps=0"]);
  await cluster.kubectl(["label", "namespace", strict, "pod-security.kubernetes.io/enforce=restricted"]);
  const want = (k8sName: string, k8sNamespace: string) => {
    const deploymentId = `d_${k8sName}`;
    return admin.setDeployment(region, applyDeployment({ k8sName, k8sNamespace, deploymentId, replicas: 3 }));
  };
  await want("pods", fewPods);
  await want("sets", noSets);
  await want("strict", strict);
  await startAgent();

  const pods = await becauseOf("quota", "pods");
  assert.match(pods.reason, /^2 of 3 pods: FailedCreate: pods "pods" is forbidden: exceeded quota: few, /);
  const sets = await becauseOf("quota", "sets");
  assert.match(sets.reason, /403 Forbidden: replicasets\.apps "sets" is forbidden: exceeded quota: none, /);
  const refused = await becauseOf("pods-refused", "strict");
  assert.match(refused.reason, /FailedCreate: pods "strict" is forbidden: violates PodSecurity "restricted/);
});
