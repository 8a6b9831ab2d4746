// The chart on a real Kubernetes, before an upgrade: an agent that does not heed the lease must be gone before new ones
// start, and any other is replaced pod by pod.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { parseAllDocuments } from "yaml";
import { helm, resolveGoTool } from "../../tools/go-tool.ts";
import { renderChart } from "../../tools/helm-chart.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;
const annotation = "krane.unkey.com/lease";
/** Helm renders nothing over an object that is not its own. */
const ofRelease = { "meta.helm.sh/release-name": "krane", "meta.helm.sh/release-namespace": "krane" };

before(() => cluster.empty());
after(() => cluster.empty());

async function install(annotations: Readonly<Record<string, string>>): Promise<void> {
  const labels = { app: "krane" };
  const pod = { containers: [{ name: "krane", image: "registry.example/krane:1" }] };
  const items = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "krane" } },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: {
        name: "krane",
        namespace: "krane",
        labels: { "app.kubernetes.io/managed-by": "Helm" },
        annotations: { ...ofRelease, ...annotations },
      },
      spec: { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod } },
    },
  ];
  await cluster.kubectl(["apply", "-f", "-"], {
    input: JSON.stringify({ apiVersion: "v1", kind: "List", items }),
  });
}

test("the upgrade from an agent without a lease uses Recreate, and the next one is rolling", async (t) => {
  const binary = await resolveGoTool(helm, process.env, { report: () => undefined }, never);
  if (binary.kind === "missing") return t.skip(`helm: ${binary.what}`);
  const strategy = async () => {
    const access = ["--dry-run=server", "--kubeconfig", cluster.kubeconfigPath];
    // Helm asks the cluster for every kind, and this one has not all of Cilium's.
    const parts = ["workloads", "sentinels", "components"].map((part) => `cilium.${part}.enabled=false`);
    const text = await renderChart(binary.path, [...access, "--set", parts.join()], never);
    const agent = parseAllDocuments(text)
      .map((document) => document.toJS())
      .find((object) => object?.kind === "Deployment" && object.metadata.name === "krane");
    assert.equal(agent?.metadata.annotations[annotation], "required");
    return agent?.spec.strategy.type;
  };
  assert.equal(await strategy(), "RollingUpdate", "a first install replaces nothing");
  await install({});
  assert.equal(await strategy(), "Recreate");
  await install({ [annotation]: "required" });
  assert.equal(await strategy(), "RollingUpdate");
});
