// An app with a route on a real API server: its Service always has ready endpoints, and leads to one release at a time.
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { Pod, Service } from "kubernetes-types/core/v1.js";
import { ApplyRoute_Expose as Expose } from "../../../src/gen/ctrl/v1/route_pb.ts";
import { AppSpecSchema, Release_Phase as Phase } from "../../../src/gen/krane/admin/v1/app_pb.ts";
import { advanceReleases } from "../../../src/server/apps/release-steps.ts";
import { withSpec } from "../../../src/server/apps/releases.ts";
import { agentToken } from "../../integration/agent/agent-world.ts";
import { dev as region, serveControlPlane, token } from "../../integration/server/served-control-plane.ts";
import { startAgentProcess } from "../../support/agent-process.ts";
import { clusterUnderTest } from "../../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../../support/deployed-rights.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { buildKrane } from "../../support/krane-process.ts";

const cluster = clusterUnderTest();
let krane: Awaited<ReturnType<typeof buildKrane>>;
let account: ServiceAccountAccess;

before(async () => {
  krane = await buildKrane();
});
beforeEach(async () => {
  await cluster.empty();
  account = await installRights(cluster, ["agent"]);
});
after(async () => {
  await account.remove();
  await krane.remove();
});

const id = "app_web";
const { signal } = new AbortController();

interface Slice {
  readonly endpoints?: readonly {
    readonly conditions?: { readonly ready?: boolean };
    readonly targetRef?: { readonly name?: string };
  }[];
}

async function items<T>(what: string, ...more: readonly string[]): Promise<readonly T[]> {
  return JSON.parse(await cluster.kubectl(["-n", "acme", "get", what, "-o", "json", ...more])).items;
}

/** The names of the pods that get connections. */
async function endpoints(): Promise<readonly string[]> {
  const slices = await items<Slice>("endpointslices", "-l", "kubernetes.io/service-name=web");
  return slices
    .flatMap((slice) => slice.endpoints ?? [])
    .flatMap(({ conditions, targetRef }) => (conditions?.ready === false ? [] : (targetRef?.name ?? [])));
}

const podsOf = async (number: number) =>
  (await items<Pod>("pods", "-l", `unkey.com/deployment.id=${id}-${number}`)).map(
    ({ metadata }) => metadata?.name ?? "",
  );

test("through releases and a change back, the Service of an app keeps its address and has only ready pods of one release", async (t) => {
  const { store, running } = await serveControlPlane(t, "h2c");
  const controlPlane = { url: running?.url ?? assert.fail("it is not served"), token };
  const { kubeconfigPath } = account;
  await startAgentProcess(
    t,
    { program: krane.program, region, controlPlane, kubeconfigPath, agentToken },
    {},
  );
  const author = () => ({ by: "test", atMs: Date.now() });
  const apply = (image: string) => {
    const template = applyDeployment({
      deploymentId: id,
      k8sName: "web",
      k8sNamespace: "acme",
      image,
      replicas: 2,
    });
    const policy = { readySeconds: 1, deadlineSeconds: 120, drainSeconds: 0 };
    const spec = create(AppSpecSchema, { template, policy, expose: Expose.ENVIRONMENT });
    const origin = { ...author(), cause: "applied", secrets: new Uint8Array() };
    return store.changeApp(region, id, ({ app }) => withSpec(app, spec, origin), author());
  };
  let lowest = Number.POSITIVE_INFINITY;
  const untilOnly = (number: number) =>
    eventually(
      `only release ${number} is left`,
      async () => {
        await advanceReleases(store, Date.now(), signal);
        if (number > 1) lowest = Math.min(lowest, (await endpoints()).length);
        const { app, deployments } = await store.app(region, id);
        const phases = app?.releases.filter(({ phase }) => phase !== Phase.RETIRED);
        assert.deepEqual(
          phases?.map((each) => [each.number, each.phase]),
          [[number, Phase.CURRENT]],
        );
        assert.equal(deployments.length, 1);
        assert.deepEqual((await endpoints()).toSorted(), (await podsOf(number)).toSorted());
        assert.equal((await endpoints()).length, 2);
        await pause(50);
      },
      { deadlineMs: 120_000 },
    );
  await apply("registry.example/web:1");
  await untilOnly(1);
  const [first] = (await items<Service>("services")).filter(({ metadata }) => metadata?.name === "web");
  for (const [index, image] of ["web:2", "web:3", "web:2"].entries()) {
    await apply(`registry.example/${image}`);
    await untilOnly(index + 2);
  }
  const [last] = (await items<Service>("services")).filter(({ metadata }) => metadata?.name === "web");
  assert.equal(last?.metadata?.uid, first?.metadata?.uid);
  assert.equal(last?.spec?.clusterIP, first?.spec?.clusterIP);
  assert.ok(lowest >= 2, `${lowest} endpoints at least`);
  await store.changeApp(region, id, () => "removed", author());
  await eventually("nothing is left", async () => {
    const left = (await items<Service>("services")).filter(({ metadata }) => metadata?.name === "web");
    assert.deepEqual(
      [...left, ...(await items("ciliumnetworkpolicies", "-l", "app.kubernetes.io/component=route"))],
      [],
    );
  });
});
