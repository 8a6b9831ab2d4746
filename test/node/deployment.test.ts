// Tenants' programs in gVisor, from the control plane to an HTTP answer.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { nodeName } from "../support/node/box.ts";
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

const web: Tenant = { id: "web", namespace: "web", fields: { replicas: 2 } };

after(() => removeTenant(krane, web));

test("a deployment of two pods is Ready, in gVisor, and each answers HTTP to another pod", async () => {
  await applyAndWait(krane, web);
  const pods = await podsOf(krane, web);
  assert.equal(pods.length, 2);
  for (const { address, runtimeClass } of pods) {
    assert.equal(runtimeClass, "gvisor");
    assert.equal(await askFromPod(krane, `http://${address}:8080/`), "hello");
    assert.match(await askFromPod(krane, `http://${address}:8080/kernel`), /gvisor/i);
  }
});

test("the control plane reports addresses at which the pods answer", async () => {
  const { deployment } = JSON.parse(await krane.type("krane get deployment d_web -o json")) as {
    readonly deployment: {
      readonly instances: readonly { readonly k8sName: string; readonly address: string }[];
    };
  };
  const names = (await podsOf(krane, web)).map(({ name }) => name);
  assert.deepEqual(deployment.instances.map(({ k8sName }) => k8sName).sort(), names.sort());
  for (const { address } of deployment.instances) {
    assert.equal(await askFromPod(krane, `http://${address}/`), "hello", address);
  }
});

test("the program has the variables that krane sets, and no token", async () => {
  const [pod] = await podsOf(krane, web);
  const env = JSON.parse(await askFromPod(krane, `http://${pod?.address}:8080/env`));
  const { PORT, UNKEY_DEPLOYMENT_ID, UNKEY_ENVIRONMENT_ID, KUBERNETES_SERVICE_HOST } = env;
  assert.deepEqual(
    { PORT, UNKEY_DEPLOYMENT_ID, UNKEY_ENVIRONMENT_ID, KUBERNETES_SERVICE_HOST },
    {
      PORT: "8080",
      UNKEY_DEPLOYMENT_ID: "d_web",
      UNKEY_ENVIRONMENT_ID: "env_web",
      KUBERNETES_SERVICE_HOST: undefined,
    },
  );
  const read = ["/nodejs/bin/node", "-e", "require('fs').readdirSync('/var/run/secrets/kubernetes.io')"];
  const exec = ["-n", web.namespace, "exec", pod?.name ?? "", "--", ...read];
  await assert.rejects(krane.cluster.kubectl(exec), /ENOENT/);
});

test("a deleted deployment leaves no pod, and its program is told to end", async () => {
  const [pod] = await podsOf(krane, web);
  const log = krane.cluster.kubectl(["-n", web.namespace, "logs", "--follow", pod?.name ?? ""]);
  await removeTenant(krane, web);
  assert.match(await log, /ends at SIGTERM/);
});

test("a program has time to finish after the signal, and is no longer reported meanwhile", async (t) => {
  const finish = `
    require("node:http").createServer((_, response) => response.end("hello")).listen(process.env.PORT);
    process.on("SIGTERM", () => {
      console.log("has begun to finish");
      setTimeout(() => { console.log("has finished"); process.exit(0); }, 10_000);
    });`;
  const slow: Tenant = {
    id: "slow",
    namespace: "slow",
    fields: { command: ["/nodejs/bin/node", "-e", finish] },
  };
  t.after(() => removeTenant(krane, slow));
  await applyAndWait(krane, slow);
  const [pod] = await podsOf(krane, slow);
  const follow = ["-n", slow.namespace, "logs", "--follow", pod?.name ?? ""];
  const log = krane.cluster.kubectl(follow);
  await krane.cluster.kubectl(["-n", slow.namespace, "delete", "pod", pod?.name ?? "", "--wait=false"]);
  await eventually(
    "the other pod is reported, and this one is not",
    async () => {
      const printed = await krane.type("krane get deployment d_slow -o json");
      const { deployment } = JSON.parse(printed) as {
        readonly deployment: { readonly instances: readonly { readonly k8sName: string }[] };
      };
      const [other] = await podsOf(krane, slow);
      assert.deepEqual(
        deployment.instances.map(({ k8sName }) => k8sName),
        [other?.name],
      );
    },
    patience,
  );
  assert.equal(await log, "has begun to finish\nhas finished\n");
});

/** What `krane why` prints, once it names this cause and this reason. */
function becauseOf(tenant: Tenant, cause: string, reason = /(?:)/): Promise<string> {
  return eventually(
    `krane why says ${cause} and ${reason}`,
    async () => {
      const printed = await krane.type(`krane why d_${tenant.id} -o json`);
      assert.equal((JSON.parse(printed) as { readonly cause: string }).cause, cause, printed);
      assert.match(printed, reason);
      return printed;
    },
    patience,
  );
}

const failing: readonly (readonly [string, Tenant, string, RegExp])[] = [
  [
    "a program that ends at once",
    {
      id: "crashing",
      namespace: "failing",
      fields: { command: ["/nodejs/bin/node", "-e", "process.exit(3)"] },
    },
    "crash-loop",
    /CrashLoopBackOff/,
  ],
  [
    "an image that does not exist",
    { id: "imageless", namespace: "failing", fields: { image: "registry.example/missing:1" } },
    "image-pull",
    /ErrImagePull|ImagePullBackOff/,
  ],
  [
    "a pod that fits on no node",
    { id: "huge", namespace: "failing", fields: { cpu: "1000" } },
    "unschedulable",
    /Insufficient cpu/,
  ],
];

for (const [what, tenant, cause, reason] of failing) {
  test(`${what} is reported as ${cause}`, async (t) => {
    t.after(() => removeTenant(krane, tenant));
    await krane.type(`krane apply -f - <<'END'\n${documentsOf(tenant)}\nEND`);
    await becauseOf(tenant, cause, reason);
  });
}

// Kubernetes does not always know why a container ended: in gVisor the exit code is not that of an out-of-memory kill, and
// then containerd depends on an event that may come after the end, or not at all. Each crash is another chance.
test("a program that needs more memory than it may is reported with what Kubernetes knows of its end", async (t) => {
  const allocate = "const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))";
  const hungry: Tenant = {
    id: "hungry",
    namespace: "failing",
    fields: { memory: "64Mi", command: ["/nodejs/bin/node", "-e", allocate] },
  };
  t.after(() => removeTenant(krane, hungry));
  await krane.type(`krane apply -f - <<'END'\n${documentsOf(hungry)}\nEND`);
  await eventually(
    "Kubernetes saw an out-of-memory kill, and krane why says so",
    async () => {
      const [pod] = await listPods(krane, hungry);
      const [container] = pod?.status?.containerStatuses ?? [];
      const { reason, exitCode } = container?.lastState?.terminated ?? {};
      assert.equal(reason, "OOMKilled");
      const printed = await krane.type("krane why d_hungry -o json");
      assert.equal((JSON.parse(printed) as { readonly cause: string }).cause, "crash-loop", printed);
      assert.ok(printed.includes(`CrashLoopBackOff: OOMKilled, exit code ${exitCode}`), printed);
    },
    patience,
  );
});

test("a pod that a drained node does not take is reported, and runs when the node is back", async (t) => {
  const { kubectl } = krane.cluster;
  const moved: Tenant = { id: "moved", namespace: "moved" };
  t.after(() => removeTenant(krane, moved));
  await applyAndWait(krane, moved);
  t.after(() => kubectl(["uncordon", nodeName]));
  await kubectl(["cordon", nodeName]);
  await kubectl(["-n", moved.namespace, "delete", "pods", "--all"]);
  await becauseOf(moved, "unschedulable", /unschedulable/);
  await kubectl(["uncordon", nodeName]);
  await becauseOf(moved, "all-well");
  const [pod] = await podsOf(krane, moved);
  assert.equal(await askFromPod(krane, `http://${pod?.address}:8080/`), "hello");
});
