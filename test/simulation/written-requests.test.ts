// Every request by which the deployment controller changes a cluster, as the API server receives it: whose
// the object is stands on it, and under which name it was written (K4).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServerRequest } from "@krane/kube-apiserver";
import { Secret } from "../../src/config/secret.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { components, labelKeys } from "../../src/model/labels.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const registry = { host: "registry.example", username: "robot", password: new Secret("not-a-real-password") };
const settings = { secrets: { audience: "krane" }, registry };
const ours: readonly string[] = Object.values(components);

/** What an agent sends in a life in which it has to write everything that it can write. */
async function writesOfALife(): Promise<readonly ServerRequest[]> {
  const world = await SimulatedRegion.create();
  const writes: ServerRequest[] = [];
  world.server.faults.intercept((request) => {
    if (request.userAgent === "krane" && request.method !== "GET") writes.push(request);
    return undefined;
  });
  for (const index of [1, 2, 3]) await world.setDeployment(index, { environmentId: `env_${index}` });
  const first = await world.startAgent(settings);
  await world.until("all are there", async () => (await world.replicaSets()).length === 3);
  await world.plane.admin.scale(region, "d_1", 5);
  await world.plane.admin.deleteDeployment(region, "d_2");
  await world.until("the policy of what is deleted is gone too", async () => {
    return (await world.policies()).length === 2;
  });
  await first.stop();
  await world.plane.admin.forgetDeployment(region, "d_3");
  const deletion = { ...defaultOptions.deletion, mode: "explicit", confirmations: 1 } as const;
  await world.startAgent({ ...settings, deletion });
  await world.until("a deletion is blocked, and an Event says so", () =>
    kindsOf(writes).includes("POST Event"),
  );
  await world.stop();
  return writes;
}

function objectOf({ body }: ServerRequest): KubeObject {
  return body as KubeObject;
}

/** Method and kind of each request, once. */
function kindsOf(requests: readonly ServerRequest[]): readonly string[] {
  const kinds = requests.map((request) => {
    const { method, path } = request;
    return `${method} ${method === "DELETE" ? path.split("/").at(-2) : objectOf(request).kind}`;
  });
  return [...new Set(kinds)].sort();
}

const writes = writesOfALife();
const sentBy = async (method: string) => (await writes).filter((request) => request.method === method);

test("these are the requests that change a cluster, and there are no others", async () => {
  assert.deepEqual(kindsOf(await writes), [
    "DELETE ciliumnetworkpolicies",
    "DELETE replicasets",
    "PATCH CiliumNetworkPolicy",
    "PATCH ReplicaSet",
    "PATCH Secret",
    "POST Event",
    "POST Namespace",
  ]);
});

test("every object is written by server-side apply under krane's name, with krane's labels", async () => {
  for (const request of await sentBy("PATCH")) {
    assert.equal(request.contentType, "application/apply-patch+yaml", request.path);
    assert.equal(request.query?.["fieldManager"], "krane", request.path);
    const { labels } = objectOf(request).metadata ?? {};
    assert.equal(labels?.[labelKeys.managedBy], "krane", request.path);
    assert.ok(ours.includes(labels[labelKeys.component] ?? ""), request.path);
  }
});

test("fields of others are taken only on an object that is known by its uid", async () => {
  const forced = (await sentBy("PATCH")).filter(({ query }) => query?.["force"] === "true");
  assert.notEqual(forced.length, 0);
  for (const request of forced) assert.ok(objectOf(request).metadata?.uid, request.path);
});

test("what is only created says who made it: a namespace by its labels, an Event by its source", async () => {
  for (const request of await sentBy("POST")) {
    assert.equal(request.query?.["fieldManager"], "krane", request.path);
    const { kind, metadata } = objectOf(request);
    if (kind === "Namespace")
      assert.deepEqual(metadata?.labels, {
        [labelKeys.managedBy]: "krane",
        [labelKeys.component]: "namespace",
      });
    else assert.equal((request.body as { reportingComponent?: string }).reportingComponent, "krane");
  }
});

test("a delete names the one object that it means", async () => {
  for (const { path, body } of await sentBy("DELETE"))
    assert.ok((body as { preconditions?: { uid?: string } }).preconditions?.uid, path);
});
