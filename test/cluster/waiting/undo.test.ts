// krane rollout undo on a real API server: the Service of an app moves back to pods that still run, and no release starts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { Service } from "kubernetes-types/core/v1.js";
import { main } from "../../../src/cli/main.ts";
import { readTextFile } from "../../../src/cli/process/text-file.ts";
import { advanceReleases } from "../../../src/server/apps/release-steps.ts";
import { parse, startedAgent } from "../../integration/agent/agent-world.ts";
import { type AdminServer, startAdminServer } from "../../support/admin-server.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights } from "../../support/deployed-rights.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { freePort } from "../../support/krane-process.ts";

const region = "local.dev";
const cluster = clusterUnderTest();
const { signal } = new AbortController();
before(() => cluster.empty());
after(() => cluster.empty());

const owner = { workspace: "ws_demo", project: "proj_demo" };
const documents = [
  { apiVersion: "krane/v1", kind: "Environment", id: "env_demo", ...owner },
  {
    ...{ apiVersion: "krane/v1", kind: "App", id: "app_web", name: "web", namespace: "acme", ...owner },
    ...{ environment: "env_demo", image: "registry.example/web:1", replicas: 2, expose: "cluster" },
    release: { readyFor: "1s", drainFor: "10m" },
  },
]
  .map((each) => JSON.stringify(each))
  .join("\n---\n");

async function krane({ url, tokens }: AdminServer, ...argv: readonly string[]): Promise<string> {
  const io = new FakeIo({ "app.yaml": documents });
  const env = { KRANE_SERVER: url, KRANE_TOKEN: tokens.readWrite, KRANE_REGION: region };
  assert.equal(await main(argv, env, io), 0, io.stderr.text);
  return io.stdout.text;
}

async function leadsTo(): Promise<string | undefined> {
  const text = await cluster.kubectl(["-n", "acme", "get", "service", "web", "-o", "json"]);
  const { spec }: Service = JSON.parse(text);
  return spec?.selector?.["unkey.com/deployment.id"];
}

test("an undo moves the Service back to the pods of the release before, as often as it is asked", async (t) => {
  const rights = await installRights(cluster, ["agent"]);
  t.after(() => rights.remove());
  const server = await startAdminServer({ regions: [region] });
  t.after(() => server.stop());
  const config = parse(`region = "${region}"
rpc_port = ${await freePort()}
[control]
url = "${server.url}"
token = "${server.tokens.agent}"
[kubernetes]
kubeconfig = "kubeconfig"`);
  await startedAgent(t, config, { kubeconfig: await readTextFile(rights.kubeconfigPath, signal) });
  const isCurrent = (release: number) =>
    eventually(
      `the Service leads to release ${release}`,
      async () => {
        await advanceReleases(server.store, Date.now(), signal);
        assert.equal(await leadsTo(), `app_web-${release}`);
        await pause(50);
      },
      { deadlineMs: 120_000 },
    );
  await krane(server, "apply", "-f", "app.yaml");
  await isCurrent(1);
  await krane(server, "release", "web", "--image", "registry.example/web:2");
  await isCurrent(2);
  for (const release of [1, 2, 1]) {
    const printed = await krane(server, "rollout", "undo", "web", "--wait");
    assert.match(
      printed,
      new RegExp(`back on release ${release}, .*\n.*is ready, on release ${release}, 2/2`),
    );
    assert.equal(await leadsTo(), `app_web-${release}`);
  }
  const sets = await cluster.kubectl(["-n", "acme", "get", "replicasets", "-o", "name"]);
  assert.equal(sets.trim().split("\n").length, 2, "no release was started");
});
