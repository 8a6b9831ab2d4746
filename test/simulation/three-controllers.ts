// All three controllers at work in one region, each with connections of its own, and what a test orders
// of each and sees of it. A generation is one state of an object that can be told from every other.
import type { Interceptor } from "@connectrpc/connect";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import type { ControllerDeps } from "../../src/engine/controller-options.ts";
import type { ControllerStatus } from "../../src/gen/krane/v1/agent_pb.ts";
import { type ApplyInit, type KindName, kinds } from "../../src/kinds/kinds.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { appsDeployments, ciliumNetworkPolicies, pods, replicaSets } from "../../src/kube/resources.ts";
import type { ResourceKind } from "../../src/kube/types.ts";
import { applyState, bareState, createSpec } from "../../src/server/kind-messages.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { applyPolicy, jsonBytes, policyDocument } from "../support/policy-messages.ts";
import { applySentinel } from "../support/sentinel-messages.ts";
import {
  type ControllerName,
  createFaultyCalls,
  createFaultyControlPlane,
  createFaultyTransport,
  FaultSwitch,
  type FaultSwitches,
} from "./faulty-parts.ts";
import { defaultOptions, region, SimulatedRegion } from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();
const createSentinelController = await kinds.sentinel.loadController();
const createPolicyController = await kinds.policy.loadController();

export const controllerNames = ["cilium", "deployments", "sentinels"] as const;

export interface RunningController {
  start(signal?: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  status(): ControllerStatus;
}

interface Subject<K extends KindName = KindName> {
  readonly kind: K;
  create(deps: ControllerDeps): RunningController;
  spec(index: number, generation: number): ApplyInit<K>;
  /** A spec that no controller can accept. */
  poison(index: number): ApplyInit<K>;
  /** What the generation can be told by, in the cluster. */
  isApplied(world: SimulatedRegion, index: number, generation: number): Promise<boolean>;
  isReported(world: SimulatedRegion, index: number, generation: number): Promise<boolean>;
}

const never = new AbortController().signal;

const deployments: Subject<"deployment"> = {
  kind: "deployment",
  create: (deps) => createDeploymentController(defaultOptions, deps),
  spec: (index, generation) =>
    applyDeployment({
      k8sName: `web-${index}`,
      deploymentId: `d_${index}`,
      image: imageOf(generation),
      // What is flooded has no pods: they are not what a flood is about.
      replicas: index < floodIndex ? generation : 0,
    }),
  poison: (index) => ({ ...deployments.spec(index, 1), port: 70_000 }),
  isApplied: (world, index, generation) =>
    mentions(world, replicaSets, "acme", `web-${index}`, imageOf(generation)),
  async isReported(world, index, generation) {
    const report = await world.plane.admin.deploymentReport(region, `d_${index}`);
    return report?.instances.length === (index < floodIndex ? generation : 0);
  },
};

const sentinels: Subject<"sentinel"> = {
  kind: "sentinel",
  create: (deps) => createSentinelController(defaultOptions, deps),
  spec: (index, generation) =>
    applySentinel({
      k8sName: `gate-${index}`,
      sentinelId: `se_${index}`,
      image: imageOf(generation),
      replicas: index < floodIndex ? 1 : 0,
    }),
  poison: (index) => ({ ...sentinels.spec(index, 1), image: "not an image" }),
  isApplied: (world, index, generation) =>
    mentions(world, appsDeployments, "sentinel", `gate-${index}`, imageOf(generation)),
  async isReported(world, index, generation) {
    const status = await world.plane.admin.sentinelStatus(region, `se_${index}`);
    return index < floodIndex ? status?.runningImage === imageOf(generation) : status !== undefined;
  },
};

const cilium: Subject<"policy"> = {
  kind: "policy",
  create: (deps) => createPolicyController(defaultOptions, deps),
  spec: (index, generation) =>
    applyPolicy({
      k8sName: `to-web-${index}`,
      ciliumNetworkPolicyId: `net_${index}`,
      policy: jsonBytes({
        ...policyDocument,
        spec: { endpointSelector: { matchLabels: { generation: imageOf(generation) } } },
      }),
    }),
  poison: (index) => ({ ...cilium.spec(index, 1), policy: jsonBytes(["no", "policy"]) }),
  isApplied: (world, index, generation) =>
    mentions(world, ciliumNetworkPolicies, "acme", `to-web-${index}`, imageOf(generation)),
  // The protocol has no status of policies.
  isReported: async () => true,
};

const subjects = { cilium, deployments, sentinels } as const;

/** Objects from here on are those of a flood. */
export const floodIndex = 1_000;

export class ThreeControllers {
  readonly world: SimulatedRegion;
  readonly switches: FaultSwitches;
  private readonly running: Map<ControllerName, RunningController>;

  private constructor(world: SimulatedRegion, switches: FaultSwitches) {
    this.world = world;
    this.switches = switches;
    this.running = new Map(controllerNames.map((name) => [name, this.create(name)]));
  }

  static async start(): Promise<ThreeControllers> {
    const switches = {
      cilium: new FaultSwitch(),
      deployments: new FaultSwitch(),
      sentinels: new FaultSwitch(),
    };
    const interceptors: readonly Interceptor[] = [createFaultyCalls(switches)];
    const world = await SimulatedRegion.create({ withPods: true, interceptors });
    const all = new ThreeControllers(world, switches);
    for (const controller of all.running.values()) await world.resolved(controller.start());
    return all;
  }

  status(name: ControllerName): ControllerStatus | undefined {
    return this.running.get(name)?.status();
  }

  order(name: ControllerName, index: number, generation: number): Promise<bigint> {
    return this.put(name, subjects[name].spec(index, generation));
  }

  poison(name: ControllerName, index: number): Promise<bigint> {
    return this.put(name, subjects[name].poison(index));
  }

  /**
   * A row that the control plane itself cannot read: questions about it fail, and streams bring its bare
   * version. Returns what a newer server would send in its place.
   */
  insertUnreadable(name: ControllerName, index: number): object {
    const { kind, spec } = subjects[name] as Subject;
    const version = this.world.plane.faults.insertUnreadable(region, kind, spec(index, 1));
    const news = { no: 4_000, wireType: 0, data: new Uint8Array([1]) };
    return { ...bareState(kind, version), $unknown: [news] };
  }

  /**
   * So many changes of so few objects, as one stream brings them. Their versions are taken out of the
   * region's numbering, and the last of each is what the control plane holds.
   */
  async flood(name: ControllerName, messages: number, keys: number): Promise<Iterable<object>> {
    const { kind, spec } = subjects[name] as Subject;
    const { faults } = this.world.plane;
    const base = await this.order(name, floodIndex, 1);
    faults.setCounter(region, base + BigInt(messages));
    const rounds = messages / keys;
    for (let key = 0; key < keys; key++) {
      const version = base + BigInt((rounds - 1) * keys + key + 1);
      faults.insertBehind(region, kind, spec(floodIndex + key, rounds), version);
    }
    return (function* () {
      for (let sent = 0; sent < messages; sent++) {
        const generation = Math.floor(sent / keys) + 1;
        const made = createSpec(kind, spec(floodIndex + (sent % keys), generation));
        yield applyState(kind, made, base + BigInt(sent + 1));
      }
    })();
  }

  /** Replaces every pod of the region, so that there is something to report. */
  async replacePods(): Promise<void> {
    for (const { metadata } of await this.world.list(pods)) {
      const { namespace = "", name = "" } = metadata ?? {};
      await this.world.api.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 }, never);
    }
  }

  async isCurrent(name: ControllerName, index: number, generation: number): Promise<boolean> {
    const { isApplied, isReported } = subjects[name];
    return (await isApplied(this.world, index, generation)) && isReported(this.world, index, generation);
  }

  isApplied(name: ControllerName, index: number, generation: number): Promise<boolean> {
    return subjects[name].isApplied(this.world, index, generation);
  }

  private put(name: ControllerName, spec: ApplyInit<KindName>): Promise<bigint> {
    const { admin } = this.world.plane;
    if (name === "deployments") return admin.setDeployment(region, spec as ApplyInit<"deployment">);
    if (name === "sentinels") return admin.setSentinel(region, spec as ApplyInit<"sentinel">);
    return admin.setPolicy(region, spec as ApplyInit<"policy">);
  }

  private create(name: ControllerName): RunningController {
    const { world, switches } = this;
    const parts = switches[name];
    const agent = world.createAgentOf(name, (deps) => {
      const inner = createInProcessTransport(world.server, { userAgent: "krane" });
      const api = createKubeApi(createFaultyTransport(inner, parts, world.clock));
      const controlPlane = createFaultyControlPlane(deps.controlPlane, parts);
      return subjects[name].create({ ...deps, api, controlPlane });
    });
    return agent.controller;
  }
}

function imageOf(generation: number): string {
  return `registry.example/acme/web:${generation}`;
}

async function mentions(
  world: SimulatedRegion,
  kind: ResourceKind,
  namespace: string,
  name: string,
  text: string,
): Promise<boolean> {
  const object = await world.api.get(kind, { namespace, name }, {}, never);
  return JSON.stringify((object as { spec?: unknown } | undefined)?.spec ?? {}).includes(`"${text}"`);
}
