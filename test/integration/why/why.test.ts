// `krane why` against a region in which the causes are really there.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import type { WholeResponse } from "@krane/kube-apiserver";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { ApplyDeployment } from "../../../src/gen/ctrl/v1/deployment_pb.ts";
import { nodes, replicaSets } from "../../../src/kube/resources.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";
import { createWhyWorld, type WhyWorld } from "./why-world.ts";

const never = new AbortController().signal;
const namespace = "acme";

function named(name: string, more: Parameters<typeof applyDeployment>[0] = {}): ApplyDeployment {
  const image = `registry.example/acme/${name}:1`;
  return applyDeployment({ k8sName: name, deploymentId: `d_${name}`, image, replicas: 2, ...more });
}

/** The API server's refusal of whatever is sent about one object, or made with its name in front. */
function refuse({ cluster }: WhyWorld, method: string, name: string, message: string): void {
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "Forbidden",
    code: 403,
    message,
  };
  const answer: WholeResponse = { kind: "whole", status: 403, body };
  cluster.server.faults.intercept((request) => {
    const about = `${request.path} ${JSON.stringify(request.body ?? "")}`;
    return request.method === method && about.includes(name) ? answer : undefined;
  });
}

test("the causes of a region at work are told apart", async (t) => {
  const world = await createWhyWorld(t);
  const { admin, region, cluster, becauseOf, krane, plane } = world;
  const { api, behaviours } = cluster;
  const want = (name: string, more?: Parameters<typeof applyDeployment>[0]) =>
    admin.setDeployment(region, named(name, more));

  await want("well");
  await t.test("before there is an agent, nobody acts", async () => {
    const { remedy } = await becauseOf("agent-never-seen", "well");
    assert.match(remedy, /Start an agent for region local\.dev/);
  });

  behaviours.set("pull", { image: "*/pull:*", behaviour: { image: "missing" } });
  behaviours.set("crash", { image: "*/crash:*", behaviour: { crashAfterMs: 1 } });
  behaviours.set("slow", { image: "*/slow:*", behaviour: { readyMs: "never" } });
  const quota = 'pods "quota-x7k2p" is forbidden: exceeded quota: small, used: pods=2, limited: pods=2';
  refuse(world, "POST", '"quota-', quota);
  refuse(world, "PATCH", "/replicasets/forbidden", 'User "krane" cannot patch resource "replicasets"');
  await world.startAgent();
  await becauseOf("all-well", "well");

  await t.test("what krane refuses names its field, and past the admin API it can be asked for", async () => {
    await want("invalid", { port: 99_999 });
    const { reason, remedy, applied } = await becauseOf("invalid-spec", "deployment", "d_invalid");
    assert.match(reason, /^port must be from 1 to 65535/);
    assert.equal(remedy, "Fix port and apply it again.");
    assert.equal(applied, "rejected; nothing is applied");
  });

  await t.test("pods that cannot run are told in the words of the cluster", async () => {
    await Promise.all(["pull", "crash", "slow", "quota"].map((name) => want(name)));
    const pull = await becauseOf("image-pull", "pull");
    assert.match(pull.reason, /^2 of 2 pods: (?:ErrImagePull|ImagePullBackOff)/);
    assert.match(pull.remedy, /kubectl -n acme describe pods -l unkey\.com\/deployment\.id=d_pull$/);
    const { stdout } = await krane("why", "pull");
    assert.match(
      stdout,
      /^deployment\/d_pull \(acme\/pull\): Its image cannot be pulled\.\n\nCause: +image-pull\nReason: +2 of 2 pods: /,
    );
    assert.match(stdout, /^Differs: +ready pods: 2 wanted, 0 found$/m);
    assert.match(stdout, /^What to do: +Check that the image exists/m);
    const crash = await becauseOf("crash-loop", "crash");
    assert.match(crash.reason, /pods: CrashLoopBackOff/);
    const { reason } = await becauseOf("quota", "quota");
    assert.equal(reason, `2 of 2 pods: FailedCreate: ${quota.replace("quota-x7k2p", "quota")}`);
    const slow = await becauseOf("starting", "slow");
    assert.match(slow.live, /^0 of 2 pods ready, 2 not ready/);
  });

  await t.test(
    "what the cluster forbids is retried, and told from a quota; nobody else waits for it",
    async () => {
      await want("forbidden");
      const { reason } = await becauseOf("forbidden", "forbidden");
      assert.match(reason, /403 Forbidden: User "krane" cannot patch/);
      await want("later");
      await becauseOf("all-well", "later");
      // As long as it is tried again, its neighbours may have to wait a moment, and would say why.
      await admin.deleteDeployment(region, "d_forbidden");
      await becauseOf("deleted", "forbidden");
    },
  );

  await t.test("a name that somebody else has is left to them", async () => {
    const labels = { app: "theirs" };
    const template = { metadata: { labels }, spec: { containers: [{ name: "a", image: "a" }] } };
    const stranger: ReplicaSet = {
      metadata: { namespace, name: "taken" },
      spec: { replicas: 0, selector: { matchLabels: labels }, template },
    };
    await api.create(replicaSets, stranger, {}, never);
    await want("taken");
    const { reason, remedy } = await becauseOf("name-taken", "taken");
    assert.match(reason, /^ReplicaSet acme\/taken is not krane's/);
    assert.match(remedy, /kubectl -n acme get replicaset taken -o yaml$/);
  });

  await t.test("one who keeps changing it is named", async () => {
    const fight = async () => {
      const manifest: ReplicaSet = {
        metadata: { namespace, name: "well" },
        spec: { replicas: 7, selector: { matchLabels: { "unkey.com/deployment.id": "d_well" } } },
      };
      await api.apply(replicaSets, manifest, { fieldManager: "autoscaler", force: true }, never);
    };
    for (let round = 0; round < 3; round++) {
      await fight();
      await eventually("krane has put it right", async () => {
        const live = await api.get(replicaSets, { namespace, name: "well" }, {}, never);
        assert.equal(live?.spec?.replicas, 2);
      });
    }
    await fight();
    const { reason } = await becauseOf("contested", "well");
    const named =
      /^field manager "autoscaler" keeps changing spec\.replicas of ReplicaSet acme\/well since \d{4}-\S+Z$/;
    assert.match(reason, named);
  });

  await t.test("what is paused, deleted, outdated or unknown is called so", async () => {
    await want("later", { replicas: 0 });
    assert.match((await becauseOf("paused", "later")).remedy, /krane scale deployment d_later --replicas 1/);
    await want("changed");
    await becauseOf("all-well", "changed");
    await want("changed", { image: "registry.example/acme/changed:2" });
    const { live, differences } = await becauseOf("older-pods", "changed");
    assert.match(live, /^2 of 2 pods ready, 2 from an older version/);
    assert.deepEqual(differences, [{ field: "pods from an older version", desired: "0", live: "2" }]);
    await admin.deleteDeployment(region, "d_changed");
    await becauseOf("deleted", "changed");
    const unknown = await krane("why", "nobody");
    assert.equal(unknown.code, 3);
    assert.match(
      unknown.stdout,
      /^object\/nobody: The control plane has no such object in region local\.dev\./,
    );
  });

  await t.test("a finalizer that holds a deletion up is named", async () => {
    await want("held");
    await becauseOf("all-well", "held");
    const hold = (finalizers: string[]) => {
      const manifest: ReplicaSet = { metadata: { namespace, name: "held", finalizers } };
      return api.apply(replicaSets, manifest, { fieldManager: "somebody", force: true }, never);
    };
    await hold(["example.com/hold"]);
    await admin.deleteDeployment(region, "d_held");
    const { reason } = await eventually("the finalizer is named", async () => {
      const answer = await becauseOf("deletion-in-progress", "held");
      assert.notEqual(answer.reason, "");
      return answer;
    });
    assert.equal(reason, "ReplicaSet is being deleted and waits for finalizer example.com/hold");
    await hold([]);
    await becauseOf("deleted", "held");
  });

  await t.test("pods that no node takes are told in the words of the scheduler", async () => {
    const { items } = await api.list(nodes, {}, never);
    for (const { metadata } of items) {
      const manifest = { metadata: { name: metadata?.name ?? "" }, spec: { unschedulable: true } };
      await api.apply(nodes, manifest, { fieldManager: "somebody", force: true }, never);
    }
    await want("homeless");
    const { reason } = await becauseOf("unschedulable", "homeless");
    assert.match(
      reason,
      /^2 of 2 pods: Unschedulable: 0\/\d+ nodes are available: \d+ node\(s\) were unschedulable/,
    );
  });

  await t.test("a stream that does not come up is the reason for what has not arrived", async () => {
    plane.faults.failNext("watchDeployments", Code.Unavailable, Number.POSITIVE_INFINITY);
    plane.faults.cutStreams();
    await want("unheard");
    const { reason } = await becauseOf("stream-down", "unheard");
    assert.match(reason, /^unavailable/);
  });
});

test("a cluster without Cilium is told by what it lacks", async (t) => {
  const { admin, region, becauseOf, startAgent } = await createWhyWorld(t, { withoutCilium: true });
  await admin.setDeployment(region, named("web"));
  await admin.setSentinel(region, applySentinel({ k8sName: "lb", sentinelId: "s_lb" }));
  await startAgent();
  const { reason, remedy } = await becauseOf("missing-crd", "web");
  assert.match(reason, /the cluster has no CiliumNetworkPolicy/);
  assert.match(remedy, /^Install Cilium/);
  await becauseOf("missing-crd", "sentinel", "s_lb");
});
