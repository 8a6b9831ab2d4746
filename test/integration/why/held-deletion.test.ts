// A deletion that the agent holds back: found by `krane why`, released at the control plane, done by the agent.
import assert from "node:assert/strict";
import { test } from "node:test";
import { replicaSets } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { createWhyWorld } from "./why-world.ts";

const never = new AbortController().signal;
const ref = { namespace: "acme", name: "web" };

test("a deletion that is held back is found by name, released by hand, and done", async (t) => {
  const world = await createWhyWorld(t);
  const { admin, region, cluster, becauseOf, krane, startAgent } = world;
  await admin.setDeployment(region, applyDeployment({ deploymentId: "d_web" }));
  const first = await startAgent();
  await becauseOf("all-well", "web");
  await first.stop();
  await admin.forgetDeployment(region, "d_web");
  await startAgent("[deletion]\nconfirmations = 1\n");

  const { remedy, live } = await becauseOf("deletion-blocked", "web");
  assert.equal(live, "acme/web exists");
  assert.match(remedy, /krane deletions release deployments acme\/web/);
  assert.match((await krane("deletions", "list")).stdout, /^deployments +acme\/web +d_web/m);
  assert.equal((await krane("deletions", "release", "deployments", "acme/other")).code, 3);

  assert.equal((await krane("deletions", "release", "deployments", "acme/web")).code, 0);
  await eventually(
    "it is gone",
    async () => assert.equal(await cluster.api.get(replicaSets, ref, {}, never), undefined),
    { deadlineMs: 60_000 },
  );
  await becauseOf("unknown-object", "web");
  assert.match((await krane("events", "deployment", "d_web")).stdout, /released .* ann/);
});
