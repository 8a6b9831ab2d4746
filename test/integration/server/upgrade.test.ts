// An upgrade of `krane server` on its database: the new one beside the previous one, as during a rolling update, then
// alone, and back again. Both are the programs as they ship.
import assert from "node:assert/strict";
import { after, before, type TestContext, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { AdminService, ObjectKind } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { kindNames } from "../../../src/kinds/kinds.ts";
import { assertDigest } from "../../store/store-digest-contract.ts";
import { type OpenDatabase, openDatabase } from "../../store/store-target.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { DesiredFollower } from "../../support/desired-follower.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { buildKrane, freePort, startKrane } from "../../support/krane-process.ts";
import { applyPolicy } from "../../support/policy-messages.ts";
import { previousVersionOrSkip } from "../../support/previous-version.ts";
import { applySentinel } from "../../support/sentinel-messages.ts";

const previous = await previousVersionOrSkip(process.env);
const skip = previous.kind === "missing" && previous.what;
const region = "a.test";
const agentToken = "token-of-the-agents";
const adminToken = "ann-may-read-and-write";

let krane: Awaited<ReturnType<typeof buildKrane>>;
let target: OpenDatabase;
before(async () => {
  krane = await buildKrane();
  target = await openDatabase();
});
after(async () => {
  await target.close();
  await krane.remove();
});

type Version = "previous" | "present";

async function startServer(t: TestContext, version: Version, port?: number) {
  const listenPort = port ?? (await freePort());
  const flags = {
    "database-url": target.url,
    "agent-tokens": `${region} ${agentToken}`,
    "admin-tokens": `ann read-write ${adminToken}`,
    listen: `127.0.0.1:${listenPort}`,
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const program = version === "present" || previous.kind === "missing" ? krane.program : previous.program;
  const { child, exit } = startKrane(t, program, ["server", ...args]);
  const url = `http://127.0.0.1:${listenPort}`;
  await eventually(`the ${version} server is ready`, async () => {
    assert.equal(child.exitCode, null, "it has ended");
    assert.equal((await fetchHttp1(`${url}/health/ready`)).status, 200);
  });
  const stop = async () => {
    child.kill("SIGTERM");
    const { code, stderr } = await exit;
    assert.equal(code, 0, stderr);
  };
  return { admin: adminOf(url), stop };
}

function adminOf(baseUrl: string) {
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${adminToken}`);
        return next(request);
      },
    ],
  });
  return createClient(AdminService, transport);
}

type Admin = ReturnType<typeof adminOf>;

function refOf(kind: ObjectKind, id: string) {
  return { region, kind, id };
}

function deployment(id: string, more: Parameters<typeof applyDeployment>[0] = {}) {
  const value = applyDeployment({ deploymentId: id, k8sName: id.replace("_", "-"), ...more });
  return { region, spec: { spec: { case: "deployment", value } } } as const;
}

/** All that people see of the database: objects of every kind, environments and the whole history. */
async function loadAll(admin: Admin) {
  const { objects } = await admin.listObjects({ region, includeDeleted: true });
  const { environments } = await admin.listEnvironments({ region });
  const { events } = await admin.listEvents({ region, limit: 100 });
  assert.ok(objects.length > 0 && environments.length > 0 && events.length > 0);
  // The previous version does not know when an object was created.
  return { objects: objects.map((each) => ({ ...each, createdAtMs: 0n })), environments, events };
}

test("a server reads what the previous version stored and writes what that one reads, alone and beside it", {
  skip,
}, async (t) => {
  const port = await freePort();
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  const follower = new DesiredFollower({ url: () => `http://127.0.0.1:${port}`, region, token: agentToken });
  const old = await startServer(t, "previous", port);
  const following = follower.run(stopped.signal);
  const environment = { region, id: "env_1a2B3c4D", workspaceId: "ws_1a2B3c4D", projectId: "proj_1a2B3c4D" };
  await old.admin.applyEnvironment(environment);
  for (const id of ["d_1", "d_2", "d_3"]) await old.admin.applyObject(deployment(id));
  const sentinel = { spec: { case: "sentinel", value: applySentinel() } } as const;
  await old.admin.applyObject({ region, spec: sentinel });
  const policy = { spec: { case: "policy", value: applyPolicy() } } as const;
  await old.admin.applyObject({ region, spec: policy, deploymentId: "d_1" });
  await old.admin.deleteObject({ ref: refOf(ObjectKind.DEPLOYMENT, "d_3") });
  const stored = await loadAll(old.admin);

  // Beside each other.
  const beside = await startServer(t, "present");
  assert.deepEqual(await loadAll(beside.admin), stored);
  for (const { ref, createdAtMs } of (await beside.admin.listObjects({ region })).objects)
    assert.ok(createdAtMs > 0n, `${ref?.id} has an age, whichever version wrote it`);
  const image = "registry.example/acme/web:2";
  const upgraded = await beside.admin.applyObject(
    deployment("d_1", { image, pullSecret: "krane-registry-own" }),
  );
  const byOld = await old.admin.scaleObject({ ref: refOf(ObjectKind.DEPLOYMENT, "d_2"), replicas: 3 });
  assert.ok(byOld.version > upgraded.version, "they count together");
  await untilFollowed(follower, byOld.version);
  await assertDigests();
  assert.equal(follower.images.get("d_1")?.image, image);
  await old.stop();
  await beside.stop();

  // The new one alone, in the place of the previous one.
  const present = await startServer(t, "present", port);
  const third = await present.admin.applyObject(deployment("d_4"));
  await untilFollowed(follower, third.version);
  const before = await loadAll(present.admin);
  await present.stop();

  // Back again: it edits an object that has a field it does not know.
  const back = await startServer(t, "previous", port);
  const seen = await loadAll(back.admin);
  assert.deepEqual(versionsOf(seen), versionsOf(before));
  assert.deepEqual(seen.events, before.events);
  const scaled = await back.admin.scaleObject({ ref: refOf(ObjectKind.DEPLOYMENT, "d_1"), replicas: 2 });
  await back.admin.deleteObject({ ref: refOf(ObjectKind.SENTINEL, applySentinel().sentinelId) });
  await untilFollowed(follower, scaled.version);
  await assertDigests();
  await back.stop();

  const again = await startServer(t, "present", port);
  const { object } = await again.admin.getObject({ ref: refOf(ObjectKind.DEPLOYMENT, "d_1") });
  const spec = object?.spec?.spec;
  assert.ok(spec?.case === "deployment", `${spec?.case}`);
  assert.deepEqual(
    [object?.version, spec.value.replicas, spec.value.image, spec.value.pullSecret],
    [scaled.version, 2, image, "krane-registry-own"],
  );
  assert.equal((await loadAll(again.admin)).events.length, before.events.length + 2);
  stopped.abort();
  await following;
  await again.stop();
});

/** The digests count the changes of both versions. */
async function assertDigests(): Promise<void> {
  for (const kind of kindNames) await assertDigest(target.store, region, kind);
  assert.deepEqual(await target.store.verifyDigests(region), []);
}

async function untilFollowed(follower: DesiredFollower, version: bigint): Promise<void> {
  await eventually(`an agent has version ${version}`, () => {
    const last = `at ${follower.cursor} on connection ${follower.connections}, after ${follower.lastError?.message}`;
    assert.ok(follower.cursor >= version, last);
  });
}

function versionsOf({ objects }: Awaited<ReturnType<typeof loadAll>>) {
  return objects.map(({ ref, version, desired }) => [ref?.kind, ref?.id, version, desired]);
}
