// An order is in force exactly as long as its record in krane's own namespace: it is recorded first, and no record
// outlives a Delete, whatever fails in between.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { OrderRecords } from "../../src/engine/order-records.ts";
import { DeleteDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import { configMaps, replicaSets } from "../../src/kube/resources.ts";
import { stateNamespace } from "../support/listed-calls.ts";
import { defaultOptions, deployment, region, SimulatedRegion } from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();

const never = new AbortController().signal;
const halfHourMs = 1_800_000;
/** SchedulerService answers after a minute at the latest. */
const waitOfCallersMs = 60_000;
const key = "acme/web-1";
const ref = { namespace: "acme", name: "web-1" };
const away = create(DeleteDeploymentSchema, { k8sNamespace: "acme", k8sName: "web-1" });

/** Fails each call while it is on: before it reaches the cluster, or after. */
interface Faults {
  put?: "before" | "after" | undefined;
  remove?: "before" | "after" | undefined;
  /** Of the response; default 503. */
  status?: number | undefined;
  /** Called while a record is being written. */
  onPut?: (() => Promise<unknown>) | undefined;
}

function createFaulty(records: OrderRecords, faults: Faults): OrderRecords {
  const failing = async <T>(when: Faults["put"], call: () => Promise<T>): Promise<T> => {
    const { status = 503 } = faults;
    const error = new KubeApiError("refused", `${status} from the test`, { status });
    if (when === "before") throw error;
    const result = await call();
    if (when === "after") throw error;
    return result;
  };
  return {
    load: (signal) => records.load(signal),
    async put(record, signal) {
      await faults.onPut?.();
      return failing(faults.put, () => records.put(record, signal));
    },
    remove: (one, number, signal) => failing(faults.remove, () => records.remove(one, number, signal)),
  };
}

async function createWorld() {
  const world = await SimulatedRegion.create();
  const faults: Faults = {};
  const startAgent = async () => {
    const agent = world.createAgentOf("deployments", ({ orders, ...deps }) => {
      const faulty = createFaulty(orders ?? assert.fail("it takes orders"), faults);
      return createDeploymentController(defaultOptions, { ...deps, orders: faulty });
    });
    await world.resolved(agent.controller.start());
    return agent;
  };
  const records = async () => {
    const { items } = await world.api.list(configMaps, { namespace: stateNamespace }, never);
    return items.map(({ data }) => data?.["key"]);
  };
  const replicas = async () => (await world.api.get(replicaSets, ref, {}, never))?.spec?.replicas;
  return { world, faults, startAgent, records, replicas };
}

describe("the record of an order", () => {
  test("brings an object back that was deleted while krane was down", async () => {
    const { world, startAgent, replicas, records } = await createWorld();
    const agent = await startAgent();
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 4 }), never, "rd_1"));
    assert.deepEqual(await records(), [key]);
    await agent.stop();
    await world.api.delete(replicaSets, ref, {}, never);
    const next = await startAgent();
    await world.until("it is back", async () => (await replicas()) === 4);
    assert.equal(next.controller.seen.get(key)?.readinessId, "rd_1");
    await world.stop();
  });

  test("ends with a Delete of the control plane, and nothing of the order comes back after a restart", async () => {
    const { world, startAgent, replicas, records } = await createWorld();
    await world.setDeployment(1, { replicas: 1 });
    const agent = await startAgent();
    await world.until("it is there", async () => (await replicas()) === 1);
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 5 }), never));
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.until("it is gone", async () => (await replicas()) === undefined);
    assert.deepEqual(await records(), []);
    await agent.stop();
    // Not even the Delete is replayed.
    world.plane.faults.restoreFromEmpty(region);
    const next = await startAgent();
    await world.clock.advance(halfHourMs);
    assert.deepEqual(await world.replicaSetNames(), []);
    assert.equal(next.controller.desired.get(key), undefined);
    await world.stop();
  });

  test("ends with a Delete that the control plane gave while krane was down", async () => {
    const { world, startAgent, replicas, records } = await createWorld();
    await world.setDeployment(1, { replicas: 1 });
    const agent = await startAgent();
    await world.until("it is there", async () => (await replicas()) === 1);
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 5 }), never));
    await agent.stop();
    await world.plane.admin.deleteDeployment(region, "d_1");
    await startAgent();
    await world.until("it is gone", async () => (await replicas()) === undefined);
    assert.deepEqual(await records(), []);
    await world.stop();
  });

  test("is removed before a Delete of the control plane is followed, and the removal is retried", async () => {
    const { world, faults, startAgent, replicas, records } = await createWorld();
    await world.setDeployment(1, { replicas: 1 });
    const agent = await startAgent();
    await world.until("it is there", async () => (await replicas()) === 1);
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 5 }), never));
    faults.remove = "before";
    await world.plane.admin.deleteDeployment(region, "d_1");
    await world.clock.advance(120_000);
    const [object] = agent.controller.objects();
    assert.equal(object?.outcome, ObjectStatus_Outcome.RETRYING);
    assert.match(object.reason, /503/);
    assert.deepEqual([await replicas(), await records()], [5, [key]]);
    faults.remove = undefined;
    await world.until("it is gone", async () => (await replicas()) === undefined, 120_000);
    assert.deepEqual(await records(), []);
    await world.stop();
  });

  test("is removed before a newer version is applied, also after a restart, and the removal is retried", async () => {
    const { world, faults, startAgent, replicas, records } = await createWorld();
    const agent = await startAgent();
    await world.resolved(agent.controller.apply(deployment(1, { replicas: 5 }), never));
    faults.remove = "before";
    await world.setDeployment(1, { replicas: 2 });
    await world.setDeployment(2, { replicas: 3 });
    await world.until("other objects do not wait", async () => (await world.replicaSetNames()).length === 2);
    await world.clock.advance(60_000);
    assert.deepEqual([await replicas(), await records()], [5, [key]]);
    await agent.stop();
    const next = await startAgent();
    await world.clock.advance(60_000);
    assert.deepEqual([await replicas(), await records()], [5, [key]]);
    const object = next.controller.objects().find((each) => each.key === key);
    assert.equal(object?.outcome, ObjectStatus_Outcome.RETRYING);
    assert.match(object.reason, /503/);
    faults.remove = undefined;
    await world.until("the newer version is applied", async () => (await replicas()) === 2, 120_000);
    assert.deepEqual(await records(), []);
    await world.stop();
  });

  for (const when of ["before", "after"] as const)
    describe(`whose write fails ${when} it reaches the cluster`, () => {
      test("makes the call fail, and nothing is applied, not even after a restart", async () => {
        const { world, faults, startAgent, records } = await createWorld();
        const agent = await startAgent();
        faults.put = when;
        const outcome = await world.resolved(agent.controller.apply(deployment(1), never));
        assert.deepEqual([outcome.outcome, outcome.isUnrecorded], ["retrying", true]);
        assert.match(outcome.reason, /503/);
        await world.clock.advance(60_000);
        assert.deepEqual([await world.replicaSetNames(), await records()], [[], []]);
        await agent.stop();
        await startAgent();
        await world.clock.advance(halfHourMs);
        assert.deepEqual(await world.replicaSetNames(), []);
        await world.stop();
      });

      test("leaves the previous order in force, also after a restart", async () => {
        const { world, faults, startAgent, replicas } = await createWorld();
        const agent = await startAgent();
        await world.resolved(agent.controller.apply(deployment(1, { replicas: 2 }), never));
        faults.put = when;
        const { isUnrecorded } = await world.resolved(
          agent.controller.apply(deployment(1, { replicas: 7 }), never),
        );
        assert.equal(isUnrecorded, true);
        faults.put = undefined;
        await world.clock.advance(120_000);
        await agent.stop();
        await startAgent();
        await world.clock.advance(120_000);
        assert.equal(await replicas(), 2);
        await world.stop();
      });

      test("makes a deletion fail, and the order stays in force, also after a restart", async () => {
        const { world, faults, startAgent, replicas } = await createWorld();
        const agent = await startAgent();
        await world.resolved(agent.controller.apply(deployment(1, { replicas: 2 }), never));
        faults.remove = when;
        const { isUnrecorded } = await world.resolved(agent.controller.delete(away, never));
        assert.equal(isUnrecorded, true);
        faults.remove = undefined;
        await world.clock.advance(120_000);
        await agent.stop();
        await world.api.delete(replicaSets, ref, {}, never);
        await startAgent();
        await world.until("it is back", async () => (await replicas()) === 2);
        await world.stop();
      });
    });

  test("is not left over where the control plane changes the object while it is written", async () => {
    const { world, faults, startAgent, replicas, records } = await createWorld();
    await world.setDeployment(1, { replicas: 1 });
    const agent = await startAgent();
    await world.until("it is there", async () => (await replicas()) === 1);
    faults.onPut = async () => {
      faults.onPut = undefined;
      await world.plane.admin.deleteDeployment(region, "d_1");
      await world.clock.advance(1_000);
    };
    const { isUnrecorded } = await world.resolved(
      agent.controller.apply(deployment(1, { replicas: 5 }), never),
    );
    assert.equal(isUnrecorded, true);
    await world.until("it is gone", async () => (await replicas()) === undefined);
    await world.until("the record is gone", async () => (await records()).length === 0);
    await world.stop();
  });

  test("that is not written in time refuses the order before its caller is told that it stays in force", async () => {
    const { world, faults, startAgent, records } = await createWorld();
    const agent = await startAgent();
    faults.onPut = () => new Promise(() => undefined);
    const calls = [1, 2, 3].map((count) => agent.controller.apply(deployment(1, { replicas: count }), never));
    const askedMs = world.clock.nowMs();
    for (const { isUnrecorded } of await world.resolved(Promise.all(calls))) assert.equal(isUnrecorded, true);
    assert.ok(world.clock.nowMs() - askedMs < waitOfCallersMs, "too late");
    faults.onPut = undefined;
    await world.clock.advance(halfHourMs);
    assert.deepEqual([await world.replicaSetNames(), await records()], [[], []]);
    await world.stop();
  });

  test("that a failed write left behind brings its order into force in the next process, and the caller was told", async () => {
    const { world, faults, startAgent, records } = await createWorld();
    const agent = await startAgent();
    faults.put = "after";
    faults.remove = "before";
    const outcome = await world.resolved(agent.controller.apply(deployment(1), never));
    assert.deepEqual([outcome.isUnrecorded, outcome.mayBeRecorded], [true, true]);
    await agent.stop();
    assert.deepEqual(await records(), [key]);
    await startAgent();
    await world.until("it is there", async () => (await world.replicaSetNames()).length === 1);
    await world.stop();
  });

  test("that Kubernetes rejects is not there, and the caller is told", async () => {
    const { world, faults, startAgent } = await createWorld();
    const agent = await startAgent();
    faults.put = "before";
    faults.status = 403;
    const outcome = await world.resolved(agent.controller.apply(deployment(1), never));
    assert.deepEqual([outcome.isUnrecorded, outcome.mayBeRecorded], [true, undefined]);
    await world.stop();
  });

  test("is that of the last of several calls for the same object", async () => {
    const { world, startAgent, replicas } = await createWorld();
    const agent = await startAgent();
    const calls = [1, 2, 3].map((count) => agent.controller.apply(deployment(1, { replicas: count }), never));
    await world.resolved(Promise.all(calls));
    assert.equal(await replicas(), 3);
    await agent.stop();
    await startAgent();
    await world.clock.advance(120_000);
    assert.equal(await replicas(), 3);
    await world.stop();
  });

  test("that cannot be read keeps the agent from starting", async () => {
    const { world } = await createWorld();
    const agent = world.createAgentOf("deployments", (deps) => {
      const load = () => Promise.reject(new KubeApiError("refused", "list configmaps: 403", { status: 403 }));
      const orders = { ...(deps.orders ?? assert.fail("it takes orders")), load };
      return createDeploymentController(defaultOptions, { ...deps, orders });
    });
    await assert.rejects(
      world.resolved(agent.controller.start()),
      /cannot read the recorded orders: list configmaps: 403/,
    );
    await world.stop();
  });
});
