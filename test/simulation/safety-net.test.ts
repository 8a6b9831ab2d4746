// What a resync finds by itself. Elsewhere a change in the cluster is told by a watch and acted on at once; here
// nobody is told of any, as if every such act had been lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { Controller } from "../../src/engine/controller.ts";
import type { DefinedKind } from "../../src/engine/controller-definition.ts";
import type { ControllerDeps } from "../../src/engine/controller-options.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { deploymentRecipe } from "../../src/kinds/deployment/controller.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { createRecordedSpans } from "../support/recorded-spans.ts";
import { defaultOptions, SimulatedRegion } from "./simulated-region.ts";

const never = new AbortController().signal;
const names = ["web-1", "web-2", "web-3", "web-4"];

/** Its caches follow the cluster, and no change in them brings a key up. */
function createDeafController(deps: ControllerDeps) {
  const deafened = (kind: DefinedKind): DefinedKind =>
    Object.create(kind, { subscribe: { value: () => () => undefined } });
  return new Controller(
    kinds.deployment,
    {
      ...deploymentRecipe,
      define(settings, parts) {
        const definition = deploymentRecipe.define(settings, parts);
        return Object.create(definition, { watchedKinds: { value: definition.watchedKinds.map(deafened) } });
      },
    },
    { ...defaultOptions, replayMs: 0 },
    deps,
  );
}

/** A region in which everything is in order, moments after a pass. `lookedAt` empties what it returns. */
async function inOrder({ hasDigests = true } = {}) {
  const world = await SimulatedRegion.create({ hasDigests });
  for (const index of names.keys()) await world.setDeployment(index + 1, { replicas: 1 });
  const { spans, seen } = createRecordedSpans();
  const agent = world.createAgentOf("deployments", (deps) => createDeafController({ ...deps, spans }));
  const { controller } = agent;
  await world.resolved(controller.start());
  const passed = async () => {
    const before = controller.status().resync?.lastStartedMs;
    await world.until("a pass is over", () => controller.status().resync?.lastStartedMs !== before, 90_000);
  };
  await world.until("everything is in order", () => {
    const objects = controller.objects().filter(({ key }) => key.startsWith("acme/"));
    return (
      objects.length === names.length &&
      objects.every(({ outcome }) => outcome === ObjectStatus_Outcome.UNCHANGED)
    );
  });
  await passed();
  let looked = seen.length;
  const lookedAt = () => {
    const keys = seen.slice(looked).map(({ attributes }) => String(attributes["krane.key"]));
    looked = seen.length;
    return [...new Set(keys)].filter((key) => key.startsWith("acme/")).sort();
  };
  return { world, agent, passed, lookedAt };
}

test("a pass over objects that are in order asks for each, looks at none and writes nothing", async () => {
  const { world, agent, passed, lookedAt } = await inOrder();
  const writes = agent.writes.length;
  for (let pass = 0; pass < 3; pass++) {
    await passed();
    assert.equal(agent.controller.status().resync?.asked, names.length);
  }
  await world.clock.advance(30_000);
  assert.deepEqual(lookedAt(), []);
  assert.equal(agent.writes.length, writes);
  await world.stop();
});

test("what was edited or deleted by hand, and was not acted on, is put right by the next pass", async () => {
  const { world, lookedAt } = await inOrder();
  const replicas = async () =>
    Object.fromEntries(
      (await world.replicaSets()).map(({ metadata, spec }) => [metadata?.name, spec?.replicas]),
    );
  const [edited] = await world.replicaSets();
  assert.equal(edited?.metadata?.name, "web-1");
  const edit = [{ op: "replace" as const, path: "/spec/replicas", value: 9 }];
  await world.api.patch(replicaSets, edited, edit, { fieldManager: "kubectl-edit" }, never);
  await world.api.delete(replicaSets, { namespace: "acme", name: "web-2" }, {}, never);
  await world.clock.advance(30_000);
  assert.deepEqual(await replicas(), { "web-1": 9, "web-3": 1, "web-4": 1 });
  assert.deepEqual(lookedAt(), []);
  await world.clock.advance(35_000);
  assert.deepEqual(await replicas(), { "web-1": 1, "web-2": 1, "web-3": 1, "web-4": 1 });
  assert.deepEqual(lookedAt(), ["acme/web-1", "acme/web-2"]);
  await world.stop();
});

test("a deletion that was blocked is told as such until the control plane knows the object again, and no longer", async () => {
  const { world, agent, passed } = await inOrder({ hasDigests: false });
  const { controller } = agent;
  const outcomes = () =>
    controller.objects().flatMap(({ key, outcome }) => (key.startsWith("acme/") ? [outcome] : []));
  const { confirmations } = defaultOptions.deletion;
  world.plane.faults.failNext("getDesiredDeploymentState", Code.NotFound, confirmations * names.length);
  for (let pass = 0; pass < confirmations; pass++) await passed();
  await world.clock.advance(1_000);
  assert.deepEqual(outcomes(), Array(names.length).fill(ObjectStatus_Outcome.BLOCKED));
  await passed();
  await world.clock.advance(1_000);
  assert.deepEqual(outcomes(), Array(names.length).fill(ObjectStatus_Outcome.UNCHANGED));
  await world.stop();
});
