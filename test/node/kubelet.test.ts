// The node itself: the kubelet has the rights of one node, and its port checks callers.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { request } from "node:https";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { boxVariables, nodeAddress, nodeName } from "../support/node/box.ts";

const cluster = clusterUnderTest();
const kubeletKubeconfig = join(process.env[boxVariables.dir] ?? "", "node/kubelet.kubeconfig");

/** kubectl with the kubelet's own credentials. */
async function asKubelet(...args: readonly string[]): Promise<string> {
  const kubectl = join(cluster.binariesDir, "kubectl");
  const { stdout } = await promisify(execFile)(kubectl, ["--kubeconfig", kubeletKubeconfig, ...args]);
  return stdout;
}

/** The status with which the kubelet's port answers. */
function askKubelet(path: string, token?: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const outgoing = request(
      { host: nodeAddress, port: 10250, path, ca: cluster.ca, headers },
      (incoming) => {
        incoming.resume();
        resolve(incoming.statusCode);
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}

test("the kubelet may see its own node, and no Secret that none of its pods uses", async (t) => {
  assert.match(await asKubelet("get", "node", nodeName, "-o", "name"), /krane-node/);
  await cluster.kubectl(["create", "secret", "generic", "foreign", "--from-literal=a=b"]);
  t.after(() => cluster.kubectl(["delete", "secret", "foreign"]));
  await assert.rejects(asKubelet("get", "secret", "foreign"), /Forbidden|forbidden/);
  await assert.rejects(asKubelet("get", "secrets"), /Forbidden|forbidden/);
});

test("the kubelet may not change another node, nor the labels that decide what runs on its own", async () => {
  const other = { apiVersion: "v1", kind: "Node", metadata: { name: "other" } };
  await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(other) });
  await assert.rejects(asKubelet("annotate", "node", "other", "a=b"), /only its own Node object/);
  await assert.rejects(
    asKubelet("label", "node", nodeName, "node-restriction.kubernetes.io/pool=trusted"),
    /is not allowed to (?:set|modify) .*labels/,
  );
  await cluster.kubectl(["delete", "node", "other"]);
});

test("the kubelet's port rejects strangers, and callers without rights", async () => {
  assert.equal(await askKubelet("/pods"), 401);
  assert.equal(await askKubelet("/pods", "made-up"), 401);
  const token = (await cluster.kubectl(["create", "token", "default"])).trim();
  assert.equal(await askKubelet("/pods", token), 403);
  assert.equal(await askKubelet("/pods", cluster.adminToken), 200);
});
