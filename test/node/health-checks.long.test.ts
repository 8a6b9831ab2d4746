// Health checks of programs that start slowly or stop answering: what Kubernetes does with them, and what krane reports.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import {
  applyAndWait,
  askFromPod,
  documentsOf,
  listPods,
  patience,
  podsOf,
  removeTenant,
  startProbe,
  type Tenant,
} from "../support/node/tenants.ts";

let krane: InstalledKrane;

before(
  async () => {
    krane = await installedKrane();
    await startProbe(krane);
  },
  { timeout: 600_000 },
);

const namespace = "checked";
const program = (code: string) => ({ command: ["/nodejs/bin/node", "-e", code] });

async function restartsOf(tenant: Tenant): Promise<readonly (number | undefined)[]> {
  return (await listPods(krane, tenant)).map(({ status }) => status?.containerStatuses?.[0]?.restartCount);
}

async function statusesOf({ id }: Tenant): Promise<readonly string[]> {
  const { deployment } = JSON.parse(await krane.type(`krane get deployment d_${id} -o json`)) as {
    readonly deployment: { readonly instances: readonly { readonly status: string }[] };
  };
  return deployment.instances.map(({ status }) => status);
}

async function whyOf({ id }: Tenant): Promise<{ readonly cause: string; readonly reason?: string }> {
  return JSON.parse(await krane.type(`krane why d_${id} -o json`));
}

test("a program that needs time to start is not restarted while its initial delay lasts", async (t) => {
  const listen = `setTimeout(() => import("/app.mjs"), 5000)`;
  // Without the delay, the first check would be the last.
  const healthcheck = { path: "/", initialDelaySeconds: 40, intervalSeconds: 1, failureThreshold: 1 };
  const slow: Tenant = { id: "slow-start", namespace, fields: { ...program(listen), healthcheck } };
  t.after(() => removeTenant(krane, slow));
  await applyAndWait(krane, slow);
  assert.deepEqual(await restartsOf(slow), [0]);
});

test("a program that fails its health check is out of service until Kubernetes has restarted it", async (t) => {
  // Once asked, it fails its check, and it takes its time to end: meanwhile it runs, and is not to get requests.
  const code = `
    let isWell = true;
    require("node:http").createServer((request, response) => {
      if (request.url === "/break") isWell = false;
      response.writeHead(isWell ? 200 : 500).end();
    }).listen(process.env.PORT);
    process.on("SIGTERM", () => setTimeout(() => process.exit(0), 25_000));`;
  const healthcheck = { path: "/", intervalSeconds: 1, failureThreshold: 3, initialDelaySeconds: 10 };
  const moody: Tenant = { id: "moody", namespace, fields: { ...program(code), healthcheck } };
  t.after(() => removeTenant(krane, moody));
  await applyAndWait(krane, moody);
  const [pod] = await podsOf(krane, moody);
  await askFromPod(krane, `http://${pod?.address}:8080/break`);
  await eventually(
    "it is reported as not ready",
    async () => {
      assert.deepEqual(await statusesOf(moody), ["STATUS_PENDING"]);
      assert.equal((await whyOf(moody)).cause, "starting");
    },
    patience,
  );
  await eventually(
    "it runs again",
    async () => {
      assert.deepEqual(await restartsOf(moody), [1]);
      assert.deepEqual(await statusesOf(moody), ["STATUS_RUNNING"]);
      assert.equal((await whyOf(moody)).cause, "all-well");
    },
    patience,
  );
});

test("a program that never passes its health check is reported as one that Kubernetes keeps restarting", async (t) => {
  const healthcheck = { path: "/missing", intervalSeconds: 1, failureThreshold: 3 };
  const failing: Tenant = { id: "unhealthy", namespace, fields: { healthcheck } };
  t.after(() => removeTenant(krane, failing));
  await krane.type(`krane apply -f - <<'END'\n${documentsOf(failing)}\nEND`);
  await eventually(
    "krane why names the loop",
    async () => {
      const { cause, reason } = await whyOf(failing);
      assert.equal(cause, "crash-loop");
      assert.match(reason ?? "", /CrashLoopBackOff/);
    },
    patience,
  );
});
