// An API server, or a proxy in front of it, that answers a write with something untrue misleads krane for minutes at most.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { kinds } from "../../src/kinds/kinds.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import type { KubeObject } from "../../src/kube/types.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();
const never = new AbortController().signal;
const huge = "99999999999999999999";
const healedMs = 300_000;

type Lie = (object: KubeObject) => KubeObject;

const withMetadata =
  (lie: object): Lie =>
  (object) => ({ ...object, metadata: { ...object.metadata, ...lie } });

const lies: Readonly<Record<string, Lie>> = {
  "a huge resourceVersion": withMetadata({ resourceVersion: huge }),
  "a foreign uid": withMetadata({ uid: "00000000-0000-4000-8000-000000000000" }),
  "a foreign uid and a huge resourceVersion": withMetadata({ uid: "00000000-0000", resourceVersion: huge }),
  "no uid": withMetadata({ uid: "", resourceVersion: huge }),
  "the name of another object": withMetadata({ name: "web-2", resourceVersion: huge }),
};

/** The first answers about the ReplicaSet web-1 are lies. */
async function startMisled(lie: { apply?: Lie; deletes?: boolean }, times = 2) {
  const world = await SimulatedRegion.create();
  let left = times;
  const isMisled = (kind: string, name: string | undefined) =>
    kind === "ReplicaSet" && name === "web-1" && left-- > 0;
  const misleading = (api: KubeApi): KubeApi => ({
    ...api,
    async apply(kind, manifest, options, signal) {
      const result = await api.apply(kind, manifest, options, signal);
      if (lie.apply === undefined || !isMisled(kind.kind, manifest.metadata?.name)) return result;
      return { ...result, object: lie.apply(result.object) as typeof result.object };
    },
    async delete(kind, ref, options, signal) {
      if (lie.deletes && isMisled(kind.kind, ref.name)) return { kind: "deleted" };
      return api.delete(kind, ref, options, signal);
    },
  });
  const agent = world.createAgentOf("deployments", (deps) =>
    createDeploymentController(defaultOptions, { ...deps, api: misleading(deps.api) }),
  );
  for (const index of [1, 2]) await world.setDeployment(index, { replicas: 1 });
  await world.resolved(agent.controller.start());
  await world.clock.advance(5_000);
  const live = (name: string) => world.api.get(replicaSets, { namespace: "acme", name }, {}, never);
  return { world, agent, live };
}

describe("an apply that is answered with", () => {
  for (const [name, apply] of Object.entries(lies))
    test(name, async () => {
      const { world, live } = await startMisled({ apply });
      for (const target of ["web-1", "web-2"]) {
        const edited = await live(target);
        assert.ok(edited, `${target} was applied`);
        const edit = [{ op: "replace" as const, path: "/spec/replicas", value: 9 }];
        await world.api.patch(replicaSets, edited, edit, { fieldManager: "kubectl-edit" }, never);
      }
      for (const target of ["web-1", "web-2"])
        await world.until(
          `${target} is repaired`,
          async () => (await live(target))?.spec?.replicas === 1,
          healedMs,
        );
      await world.setDeployment(1, { replicas: 4 });
      await world.until(
        "a new version is applied",
        async () => (await live("web-1"))?.spec?.replicas === 4,
        healedMs,
      );
      await world.api.delete(replicaSets, { namespace: "acme", name: "web-1" }, {}, never);
      await world.until("it comes back", async () => (await live("web-1")) !== undefined, healedMs);
      await world.stop();
    });
});

test("a deletion that is answered with success, although nothing was deleted", async () => {
  const { world, live } = await startMisled({ deletes: true }, 1);
  await world.plane.admin.deleteDeployment(region, "d_1");
  await world.clock.advance(1_000);
  assert.ok(await live("web-1"), "the deletion was a lie");
  await world.until("it is deleted", async () => (await live("web-1")) === undefined, healedMs);
  await world.stop();
});
