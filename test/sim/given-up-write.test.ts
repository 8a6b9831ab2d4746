import assert from "node:assert/strict";
import { test } from "node:test";
import { Choices } from "../../sim/choices.ts";
import { failingWebhook } from "../../sim/cluster-rules.ts";
import { createKubeLink } from "../../sim/kube-link.ts";
import { Link } from "../../sim/link.ts";
import { loadKinds } from "../../sim/sim-agent.ts";
import { SimProcess } from "../../sim/sim-process.ts";
import { World } from "../../sim/world.ts";

const never = new AbortController().signal;

test("a write has no effect after its client has given up, however late its webhook answers", async () => {
  const world = await World.create({ seed: 1, kinds: await loadKinds() });
  const { clock, cluster } = world;
  await cluster.kubectl({
    method: "POST",
    path: "/api/v1/namespaces",
    contentType: "application/json",
    body: { apiVersion: "v1", kind: "Namespace", metadata: { name: "acme" } },
  });
  const process = new SimProcess("agent x.1", clock);
  const link = new Link("x", process, { clock, choices: new Choices(1, "x") });
  const transport = createKubeLink({ process, link, handler: cluster.handlerOf(process.name, "krane") });
  const webhook = failingWebhook("acme", 10_000);
  cluster.rules.add(webhook);
  const body = {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "late", namespace: "acme" },
    spec: { ports: [{ port: 80 }] },
  };
  const path = "/api/v1/namespaces/acme/services";
  const permit = { timeoutMs: 5_000, check: () => undefined };
  const sent = transport.send({ method: "POST", path, contentType: "application/json", body, permit }, never);
  const gaveUp = assert.rejects(sent, /timed out after 5000 ms/);
  await world.runFor(8_000);
  await gaveUp;
  cluster.rules.delete(webhook);
  await world.runFor(10_000);
  assert.equal(cluster.get("services", "", "acme", "late"), undefined);
  world.abandon();
});
