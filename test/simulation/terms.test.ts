// Two agents of one region, of which only the leader writes and reports (K13).
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import type { ControlPlane } from "../../src/control-plane/connection.ts";
import { ControlPlaneError } from "../../src/control-plane/error.ts";
import { reportOrderHeader } from "../../src/control-plane/report-order.ts";
import type { OrderRecords } from "../../src/engine/order-records.ts";
import { DeleteDeploymentSchema, type DeploymentState } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import { Terms } from "../../src/kube/leadership.ts";
import { configMaps, replicaSets } from "../../src/kube/resources.ts";
import { stateNamespace } from "../support/listed-calls.ts";
import { withoutEvents } from "./recording-kube-api.ts";
import {
  defaultOptions,
  deployment,
  region,
  SimulatedRegion,
  type SimulationOptions,
} from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();
const never = new AbortController().signal;

async function createWorld(interceptors: readonly Interceptor[] = [], options: SimulationOptions = {}) {
  const world = await SimulatedRegion.create({ ...options, interceptors });
  let number = 0;
  const startAgent = async (
    connected: (plane: ControlPlane) => ControlPlane = (plane) => plane,
    faults: RecordFaults = { failsToRemove: false },
  ) => {
    const leadership = new Terms();
    const agent = world.createAgentOf("deployments", ({ orders, ...deps }) =>
      createDeploymentController(
        { ...defaultOptions, reporting: { instance: "agent" } },
        {
          ...deps,
          orders: createFaulty(orders ?? assert.fail("it takes orders"), faults),
          controlPlane: connected(deps.controlPlane),
          leadership,
        },
      ),
    );
    await world.resolved(agent.controller.start());
    return { ...agent, lead: () => leadership.begin(++number), retire: () => leadership.end("test") };
  };
  return { world, startAgent };
}

interface RecordFaults {
  failsToRemove: boolean;
}

function createFaulty(records: OrderRecords, faults: RecordFaults): OrderRecords {
  return {
    load: (signal) => records.load(signal),
    put: (record, signal) => records.put(record, signal),
    async remove(key, number, signal) {
      if (faults.failsToRemove) throw new KubeApiError("refused", "503 from the test", { status: 503 });
      return records.remove(key, number, signal);
    },
  };
}

/** The connection of one agent to the control plane. While it is cut, calls fail and streams are silent. */
class Cable {
  private isCut = false;
  private cutting = new AbortController();

  cut(): void {
    this.isCut = true;
    this.cutting.abort(new ControlPlaneError("unavailable", "cut"));
  }

  mend(): void {
    this.isCut = false;
    this.cutting = new AbortController();
  }

  through(plane: ControlPlane): ControlPlane {
    const check = () => {
      if (this.isCut) throw new ControlPlaneError("unavailable", "cut");
    };
    const cutting = () => this.cutting.signal;
    return {
      ...plane,
      async *watch(kind, version, signal) {
        check();
        const cut = cutting();
        try {
          yield* plane.watch(kind, version, AbortSignal.any([signal, cut]));
        } catch (error) {
          throw signal.aborted ? error : (cut.reason ?? error);
        }
      },
      async get(kind, question, signal) {
        check();
        return plane.get(kind, question, signal);
      },
    };
  }
}

/** Responses of the original's control plane carry no version. */
const withoutVersions: Interceptor = (next) => async (call) => {
  const response = await next(call);
  if (call.method.localName === "getDesiredDeploymentState" && !response.stream)
    (response.message as DeploymentState).version = 0n;
  return response;
};

describe("two agents of one region", () => {
  test("the standby neither writes nor reports; at the take-over it writes nothing where nothing differs", async () => {
    const { world, startAgent } = await createWorld();
    for (let index = 0; index < 20; index++) await world.setDeployment(index);
    const [first, second] = [await startAgent(), await startAgent()];
    await world.clock.advance(120_000);
    assert.deepEqual([first.writes.length, second.writes.length, world.reported.length], [0, 0, 0]);
    assert.equal(second.controller.desired.get("acme/web-3")?.version, 4n, "its desired state is warm");
    first.lead();
    await world.until("all are there", async () => (await world.replicaSets()).length === 20);
    await world.clock.advance(120_000);
    const written = first.writes.length;
    const reported = world.reported.length;
    assert.equal(second.writes.length, 0);
    first.retire();
    second.lead();
    await world.clock.advance(180_000);
    assert.deepEqual([first.writes.length - written, second.writes.length], [0, 0]);
    assert.equal(world.reported.length - reported, 20, "each object is reported once more");
    await world.stop();
  });

  test("reports carry the term of the leader, so that a late one of its predecessor is dropped", async () => {
    const terms: string[] = [];
    const { world, startAgent } = await createWorld([
      (next) => (call) => {
        const order = call.header.get(reportOrderHeader);
        if (order !== null) terms.push(order.split("/")[0] ?? "");
        return next(call);
      },
    ]);
    await world.setDeployment(1);
    const [first, second] = [await startAgent(), await startAgent()];
    first.lead();
    await world.until("it is reported", async () => terms.length > 0);
    first.retire();
    second.lead();
    await world.until("it is reported again", async () => terms.includes("2"));
    assert.deepEqual([...new Set(terms)], ["1", "2"]);
    await world.stop();
  });

  test("the new leader checks every key: drift from the time without a leader is repaired", async () => {
    const { world, startAgent } = await createWorld();
    for (let index = 0; index < 5; index++) await world.setDeployment(index);
    const [first, second] = [await startAgent(), await startAgent()];
    first.lead();
    await world.until("all are there", async () => (await world.replicaSets()).length === 5);
    await world.clock.advance(10_000);
    first.retire();
    await world.api.delete(replicaSets, { namespace: "acme", name: "web-1" }, {}, never);
    await world.setDeployment(2, { replicas: 7 });
    await world.clock.advance(120_000);
    assert.equal((await world.replicaSets()).length, 4, "nobody leads");
    second.lead();
    await world.until("it is back", async () => (await world.replicaSets()).length === 5, 10_000);
    const changed = await world.api.get(replicaSets, { namespace: "acme", name: "web-2" }, {}, never);
    assert.equal(changed?.spec?.replicas, 7);
    assert.equal(second.writes.filter(({ verb }) => verb === "delete").length, 0);
    await world.stop();
  });

  test("a standby that was cut off from the control plane acts on nothing old when it leads (K3)", async () => {
    const { world, startAgent } = await createWorld();
    const cable = new Cable();
    const [first, second] = [await startAgent(), await startAgent((plane) => cable.through(plane))];
    first.lead();
    for (const index of [1, 2]) await world.setDeployment(index);
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("one is left", async () => (await world.replicaSets()).length === 1);
    await world.until("the standby knows", () => second.controller.desired.get("acme/web-2") !== undefined);
    cable.cut();
    await world.setDeployment(1);
    await world.setDeployment(2, { replicas: 7 });
    await world.until("both are there", async () => (await world.replicaSets()).length === 2);
    await world.clock.advance(10_000);
    first.retire();
    second.lead();
    await world.clock.advance(120_000);
    const replicas = async () => (await world.replicaSets()).map(({ spec }) => spec?.replicas);
    assert.deepEqual([second.writes, await replicas()], [[], [1, 7]]);
    cable.mend();
    await world.setDeployment(3);
    await world.until("it follows again", async () => (await world.replicaSets()).length === 3, 120_000);
    assert.deepEqual(await replicas(), [1, 7, 1]);
    await world.stop();
  });

  test("a new leader keeps what was deleted and ordered again, if responses carry no version", async () => {
    const { world, startAgent } = await createWorld([withoutVersions], { namesIncarnation: false });
    const cable = new Cable();
    const [first, second] = [await startAgent(), await startAgent((plane) => cable.through(plane))];
    first.lead();
    await world.setDeployment(1);
    await world.until("it is there", async () => (await world.replicaSets()).length === 1);
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("it is gone", async () => (await world.replicaSets()).length === 0);
    await world.until(
      "the standby knows",
      () => second.controller.desired.get("acme/web-1")?.want.kind === "delete",
    );
    cable.cut();
    await world.setDeployment(1);
    await world.until("it is there again", async () => (await world.replicaSets()).length === 1);
    await world.clock.advance(10_000);
    first.retire();
    cable.mend();
    second.lead();
    await world.clock.advance(180_000);
    assert.deepEqual([second.writes, await world.replicaSetNames()], [[], ["web-1"]]);
    await world.setDeployment(1, { replicas: 7 });
    await world.until("it follows", async () => (await world.replicaSets())[0]?.spec?.replicas === 7);
    await world.stop();
  });

  test("a new leader does not create what was deleted and forgotten while it was cut off (K5)", async () => {
    const { world, startAgent } = await createWorld();
    const cable = new Cable();
    const [first, second] = [await startAgent(), await startAgent((plane) => cable.through(plane))];
    first.lead();
    for (const index of [1, 2]) await world.setDeployment(index);
    await world.until("both are there", async () => (await world.replicaSets()).length === 2);
    await world.until("the standby knows", () => second.controller.desired.get("acme/web-2") !== undefined);
    cable.cut();
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("one is left", async () => (await world.replicaSets()).length === 1);
    await world.clock.advance(10_000);
    await world.plane.admin.forgetDeployment(region, "d_1");
    first.retire();
    cable.mend();
    second.lead();
    await world.clock.advance(60_000);
    assert.deepEqual(await world.replicaSetNames(), ["web-2"]);
    const isKnown = () => second.controller.desired.get("acme/web-1") !== undefined;
    await world.until("its absence is confirmed", () => !isKnown(), 300_000);
    assert.deepEqual([second.writes, await world.replicaSetNames()], [[], ["web-2"]]);
    await world.setDeployment(1);
    await world.until("it is ordered again", async () => (await world.replicaSets()).length === 2);
    await world.stop();
  });

  test("a new leader does not call applied what was deleted since its earlier term (K14)", async () => {
    const { world, startAgent } = await createWorld();
    const cable = new Cable();
    const [first, second] = [await startAgent((plane) => cable.through(plane)), await startAgent()];
    first.lead();
    for (const index of [1, 2, 3]) await world.setDeployment(index);
    await world.until("all are there", async () => (await world.replicaSets()).length === 3);
    cable.cut();
    first.retire();
    second.lead();
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("one is gone", async () => (await world.replicaSets()).length === 2);
    await world.clock.advance(10_000);
    world.plane.faults.restoreFromEmpty(region);
    second.retire();
    cable.mend();
    first.lead();
    await world.clock.advance(300_000);
    const gone = first.controller.objects().find(({ key }) => key === "acme/web-1");
    assert.equal(gone?.outcome, ObjectStatus_Outcome.PENDING);
    await world.stop();
  });

  test("a new leader applies nothing old to an object whose deletion it holds back (K3)", async () => {
    const { world, startAgent } = await createWorld();
    const cable = new Cable();
    const [first, second] = [await startAgent(), await startAgent((plane) => cable.through(plane))];
    first.lead();
    for (const index of [1, 2, 3]) await world.setDeployment(index);
    await world.until("all are there", async () => (await world.replicaSets()).length === 3);
    await world.until("the standby knows", () => second.controller.desired.get("acme/web-3") !== undefined);
    cable.cut();
    await world.setDeployment(1, { replicas: 7 });
    const replicas = async () => (await world.replicaSets()).map(({ spec }) => spec?.replicas);
    await world.until("it is changed", async () => (await replicas())[0] === 7);
    await world.clock.advance(10_000);
    await world.plane.admin.forgetDeployment(region, "d_1");
    first.retire();
    cable.mend();
    second.lead();
    await world.until("it is held back", () => second.controller.blockedDeletions().length > 0, 300_000);
    await world.clock.advance(120_000);
    assert.deepEqual([withoutEvents(second.writes), await replicas()], [[], [7, 1, 1]]);
    await world.until("it goes", async () => (await world.replicaSets()).length === 2, 1_200_000);
    await world.stop();
  });

  test("an order that the previous leader took stays in force, and one that it took back does not return", async () => {
    const { world, startAgent } = await createWorld();
    const [first, second] = [await startAgent(), await startAgent()];
    first.lead();
    for (const index of [1, 2])
      await world.resolved(first.controller.apply(deployment(index, { replicas: 4 }), never));
    await world.until("both are there", async () => (await world.replicaSets()).length === 2);
    first.retire();
    second.lead();
    await world.until("it knows them", () => second.controller.desired.get("acme/web-2") !== undefined);
    const away = create(DeleteDeploymentSchema, { k8sNamespace: "acme", k8sName: "web-1" });
    await world.resolved(second.controller.delete(away, never));
    await world.resolved(second.controller.apply(deployment(2, { replicas: 6 }), never));
    await world.until("one is left", async () => (await world.replicaSets()).length === 1);
    second.retire();
    // Its own memory still has both orders as it took them.
    first.lead();
    await world.clock.advance(180_000);
    assert.deepEqual(await world.replicaSetNames(), ["web-2"]);
    const [left] = await world.replicaSets();
    assert.equal(left?.spec?.replicas, 6);
    const records = await world.api.list(configMaps, { namespace: stateNamespace }, never);
    assert.equal(records.items.length, 1);
    await world.stop();
  });

  test("an order that a newer version replaced does not return with a standby that does not know that version (K3)", async () => {
    const { world, startAgent } = await createWorld();
    const cable = new Cable();
    const records: RecordFaults = { failsToRemove: false };
    const first = await startAgent((plane) => plane, records);
    const second = await startAgent((plane) => cable.through(plane));
    first.lead();
    await world.resolved(first.controller.apply(deployment(1, { replicas: 4 }), never));
    cable.cut();
    records.failsToRemove = true;
    await world.setDeployment(1, { replicas: 7 });
    await world.clock.advance(60_000);
    records.failsToRemove = false;
    const replicas = async () => (await world.replicaSets()).map(({ spec }) => spec?.replicas);
    const written = await replicas();
    first.retire();
    second.lead();
    await world.clock.advance(120_000);
    assert.deepEqual([second.writes, await replicas()], [[], written]);
    cable.mend();
    await world.until("the newer version is applied", async () => (await replicas())[0] === 7, 120_000);
    const { items } = await world.api.list(configMaps, { namespace: stateNamespace }, never);
    assert.deepEqual(items, []);
    await world.stop();
  });

  test("what the previous leader held back is not deleted at the take-over", async () => {
    const { world, startAgent } = await createWorld();
    for (let index = 0; index < 10; index++) await world.setDeployment(index);
    const [first, second] = [await startAgent(), await startAgent()];
    first.lead();
    await world.until("all are there", async () => (await world.replicaSets()).length === 10);
    await world.clock.advance(700_000);
    // More than the budget of three.
    for (let index = 0; index < 5; index++) await world.plane.admin.forgetDeployment(region, `d_${index}`);
    await world.until("three are deleted", async () => (await world.replicaSets()).length === 7, 600_000);
    await world.clock.advance(60_000);
    assert.equal(first.controller.blockedDeletions().length, 2);
    first.retire();
    second.lead();
    await world.clock.advance(300_000);
    assert.equal((await world.replicaSets()).length, 7);
    assert.equal(second.controller.blockedDeletions().length, 2);
    const [held] = second.controller.blockedDeletions();
    assert.ok(second.controller.releaseDeletion(held?.key ?? ""));
    await world.until("the released one goes", async () => (await world.replicaSets()).length === 6);
    await world.stop();
  });
});
