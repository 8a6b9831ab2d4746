// Secrets on a real node: with the token that the kubelet mounts, for the process in the container and for no other pod.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import {
  applyAndWait,
  askFromPod,
  documentsOf,
  podsOf,
  removeTenant,
  startProbe,
  type Tenant,
} from "../support/node/tenants.ts";

let krane: InstalledKrane;
const bank: Tenant = { id: "bank", namespace: "bank" };
const value = "correct horse\nbattery ü staple";

before(
  async () => {
    krane = await installedKrane();
    await startProbe(krane);
    const [environment = ""] = documentsOf(bank).split("\n---\n");
    await krane.type(`krane apply -f - <<'END'\n${environment}\nEND`);
    await krane.type(`printf '%s' '${value}' | krane secrets set env_bank PASSWORD`);
    await applyAndWait(krane, bank);
  },
  { timeout: 600_000 },
);

after(() => removeTenant(krane, bank));

async function bankPod() {
  const [pod] = await podsOf(krane, bank);
  return pod ?? assert.fail("no pod");
}

test("the process has the secret, decrypted with the pod's own token", async () => {
  const env = JSON.parse(await askFromPod(krane, `http://${(await bankPod()).address}:8080/env`));
  assert.equal(env.PASSWORD, value);
  assert.equal(env.UNKEY_ENCRYPTED_ENV, undefined);
  assert.equal(env.UNKEY_TOKEN_PATH, undefined);
});

test("the secret is in no object of Kubernetes", async () => {
  for (const kind of ["pods", "replicasets", "secrets", "configmaps", "events"]) {
    const listed = await krane.cluster.kubectl(["get", kind, "--all-namespaces", "-o", "yaml"]);
    assert.ok(!listed.includes("correct horse"), kind);
    assert.ok(!listed.includes(Buffer.from(value).toString("base64")), kind);
  }
});

test("a pod in another namespace that claims to be this deployment, with a token of its own, gets nothing", async (t) => {
  const { name } = await bankPod();
  const printed = await krane.cluster.kubectl(["-n", bank.namespace, "get", "pod", name, "-o", "json"]);
  const { metadata, spec } = JSON.parse(printed);
  const { labels, annotations } = metadata;
  const namespace = "thief";
  // Everything that makes up the pod is copied, the blob of encrypted variables included. Where the original is, its
  // ReplicaSet would delete a pod too many before it could ask.
  const forged = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "forged", namespace, labels, annotations },
    spec: { ...spec, nodeName: undefined, restartPolicy: "Never" },
  };
  await krane.cluster.kubectl(["create", "namespace", namespace]);
  t.after(() => krane.cluster.kubectl(["delete", "namespace", namespace]));
  await eventually("the namespace has its service account", () =>
    krane.cluster.kubectl(["-n", namespace, "get", "serviceaccount", "default"]),
  );
  await krane.cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(forged) });
  await krane.type(
    `kubectl --namespace ${namespace} wait --for=jsonpath='{.status.phase}'=Failed --timeout=180s pod/forged`,
  );
  const log = await krane.cluster.kubectl(["-n", namespace, "logs", "forged"]);
  assert.match(log, /denied/);
  assert.ok(!log.includes("correct horse"));
});
