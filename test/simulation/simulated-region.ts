// A region in one process under a fake clock: a control plane in memory, an embedded Kubernetes API
// server, and controllers that come and go between them. Nothing opens a socket or sleeps.

import assert from "node:assert/strict";
import { Code, ConnectError, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  type ApiHandler,
  type ApiServer,
  createApiServer,
  createHandler,
  startControllers,
} from "@krane/kube-apiserver";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSeededRandom } from "../../src/concurrency/random.ts";
import { Secret } from "../../src/config/secret.ts";
import { ciliumDefinition } from "../../src/dev/cilium-definition.ts";
import { createFixture } from "../../src/dev/cluster-fixture.ts";
import { createInProcessTransport } from "../../src/dev/in-process-transport.ts";
import type { ControllerDeps } from "../../src/engine/controller-options.ts";
import { createOrderRecords } from "../../src/engine/kube-order-records.ts";
import type { ReportSentinelStatusRequest } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import type { KindControllerOptions } from "../../src/kinds/kind.ts";
import { type ControllerOf, kinds } from "../../src/kinds/kinds.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createKubeApi } from "../../src/kube/client.ts";
import { listAll } from "../../src/kube/list-all.ts";
import {
  ciliumNetworkPolicies,
  customResourceDefinitions,
  pods as podKind,
  replicaSets,
  runtimeClasses,
} from "../../src/kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import type { Log } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { deletionLimits } from "../support/deletion-limits.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { createListedKubeApi, stateNamespace } from "../support/listed-calls.ts";
import { connectToPlane } from "../support/plane-connection.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { reportsOfCall } from "../support/reports-of-call.ts";
import { createTestPlane, type TestPlane } from "../support/store-admin.ts";
import { testSeal } from "../support/test-seal.ts";
import { createRecordingKubeApi, type RecordedWrite } from "./recording-kube-api.ts";

const createDeploymentController = await kinds.deployment.loadController();

export const region = "local.dev";
export const token = new Secret("simulation-token");
const never = new AbortController().signal;

export const defaultOptions: KindControllerOptions = {
  workers: 16,
  deletion: deletionLimits,
  rules: { registries: [] },
  region,
  secrets: { audience: "krane" },
  networkPolicy: "required",
  runtimeClass: "gvisor",
};

const sandbox = { metadata: { name: "gvisor" }, handler: "runsc" };

export interface SimulatedAgent<C = ControllerOf<"deployment">> {
  readonly controller: C;
  /** Everything that it wrote, in order. */
  readonly writes: readonly RecordedWrite[];
  stop(): Promise<void>;
  /** Ends it as SIGKILL would: not one more call gets through, whatever it was about to do. */
  kill(): Promise<void>;
}

export interface SimulationOptions {
  /** Also runs what makes pods out of ReplicaSets. */
  readonly withPods?: boolean;
  readonly withoutCilium?: boolean;
  readonly seed?: number;
  /** See every call that reaches the control plane. */
  readonly interceptors?: readonly Interceptor[];
  /** The agents' log; by default its lines go nowhere. */
  readonly log?: Log;
  /** Whether the control plane names its incarnation. Default true; older ones do not. */
  readonly namesIncarnation?: boolean;
  /** Whether the control plane has digests. Default true; without them, every object is asked for. */
  readonly hasDigests?: boolean;
}

export interface AgentOverrides extends Partial<KindControllerOptions> {
  /** Whether the scheduler is on. Default true. */
  readonly takesOrders?: boolean;
}

export class SimulatedRegion {
  readonly clock = new FakeClock();
  readonly server: ApiServer;
  readonly api: KubeApi;
  readonly plane: TestPlane;
  /** The control plane that agents reach. A test may put another one in its place, as a load balancer would. */
  answering: Pick<TestPlane, "createTransport">;
  /** Every report that arrived, whatever became of it. */
  readonly reported: unknown[] = [];
  readonly reportedSentinels: ReportSentinelStatusRequest[] = [];
  readonly metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  /** What a mutating webhook makes of the pods that the cluster creates. */
  podWebhook: ((pod: Pod) => Pod) | undefined;
  private readonly random;
  private readonly log: Log;
  private readonly stopping = new AbortController();
  private readonly agents = new Set<Pick<SimulatedAgent, "stop">>();
  private clusterDone: Promise<void> = Promise.resolve();

  private constructor(options: SimulationOptions) {
    const { seed = 1, interceptors = [], log = createQuietLog() } = options;
    const { namesIncarnation = true, hasDigests = true } = options;
    this.log = log;
    this.random = createSeededRandom(seed);
    this.server = createApiServer({ clock: this.clock, random: this.random });
    this.api = createKubeApi(createInProcessTransport(this.server, { userAgent: "kubectl" }));
    const record: Interceptor = (next) => (call) => {
      if (!hasDigests && call.method.localName === "getDesiredDigest")
        throw new ConnectError("not on this control plane", Code.Unimplemented);
      this.reported.push(...reportsOfCall(call.method.name, call.message));
      if (call.method.localName === "reportSentinelStatus")
        this.reportedSentinels.push(call.message as ReportSentinelStatusRequest);
      return next(call);
    };
    const unnamed = namesIncarnation ? {} : ({ incarnation: "unnamed" } as const);
    this.plane = createTestPlane(
      { tokens: [token], interceptors: [record, ...interceptors], ...unnamed },
      { clock: this.clock, log: createQuietLog() },
    );
    this.answering = this.plane;
  }

  static async create(options: SimulationOptions = {}): Promise<SimulatedRegion> {
    const world = new SimulatedRegion(options);
    await world.plane.admin.registerRegion(region);
    if (!options.withoutCilium) await world.installCilium();
    if (options.withPods) await world.startCluster();
    return world;
  }

  async installCilium(): Promise<void> {
    await this.api.create(customResourceDefinitions, ciliumDefinition, {}, never);
    await this.clock.advance(1_000);
  }

  /** Starts an agent and waits until its watches are open. */
  async startAgent(overrides: AgentOverrides = {}): Promise<SimulatedAgent> {
    const agent = this.createAgent(overrides);
    await this.resolved(agent.controller.start());
    return agent;
  }

  createAgent({ takesOrders = true, ...overrides }: AgentOverrides = {}): SimulatedAgent {
    const options = { ...defaultOptions, ...overrides };
    return this.createAgentOf("deployments", ({ orders, ...deps }) =>
      createDeploymentController(options, { ...deps, ...(takesOrders && { orders }) }),
    );
  }

  /** Any controller, with connections of its own. */
  createAgentOf<C extends { stop(): Promise<void> }>(
    name: string,
    create: (deps: ControllerDeps) => C,
  ): SimulatedAgent<C> {
    const { clock, random, metrics, log } = this;
    const transport = createInProcessTransport(this.server, { userAgent: "krane" });
    const listed = createListedKubeApi(createKubeApi(transport), [
      "agent",
      "registry",
      "scheduler",
      "gateway",
    ]);
    const api = createRecordingKubeApi(listed);
    const orders = createOrderRecords({ namespace: stateNamespace, region, controller: name }, { api, log });
    const plane = { createTransport: (added: readonly Interceptor[] = []) => this.balancedTransport(added) };
    const controlPlane = connectToPlane(plane, { controller: name, region, token }, { clock, metrics });
    const controller = create({ controlPlane, api, orders, clock, random, log, metrics, seal: testSeal });
    const agent: SimulatedAgent<C> = {
      controller,
      writes: api.writes,
      stop: async () => {
        this.agents.delete(agent);
        await this.resolved(controller.stop());
        await this.resolved(controlPlane.close());
        await this.resolved(transport.close());
        assert.deepEqual(listed.unlisted, []);
      },
      kill: async () => {
        const closed = [transport.close(), controlPlane.close()];
        await this.resolved(Promise.all(closed));
        await agent.stop();
      },
    };
    this.agents.add(agent);
    return agent;
  }

  /** A deployment that differs from the others in id and name, at the control plane. */
  setDeployment(index: number, overrides: Parameters<typeof applyDeployment>[0] = {}): Promise<bigint> {
    return this.plane.admin.setDeployment(region, deployment(index, overrides));
  }

  /** Replaces a pod of a ReplicaSet by another one, without any controller. */
  async replacePod(
    owner: ReplicaSet,
    before: string | undefined,
    name: string,
    podIP: string,
  ): Promise<void> {
    const { namespace = "", name: ownerName = "", uid = "" } = owner.metadata ?? {};
    if (before !== undefined)
      await this.api.delete(podKind, { namespace, name: before }, { gracePeriodSeconds: 0 }, never);
    // Without its runtime class, the server refuses a pod as krane's template describes it.
    await this.api.create(runtimeClasses, sandbox, {}, never).catch(() => undefined);
    const { labels = {}, annotations = {} } = owner.spec?.template?.metadata ?? {};
    const controller = { apiVersion: "apps/v1", kind: "ReplicaSet", name: ownerName, uid, controller: true };
    await this.api.create(
      podKind,
      {
        metadata: { name, namespace, labels, annotations, ownerReferences: [controller] },
        spec: owner.spec?.template?.spec ?? { containers: [] },
      },
      {},
      never,
    );
    await this.api.apply(
      podKind,
      { metadata: { name, namespace }, status: { phase: "Running", podIP } },
      { fieldManager: "kubelet", force: true, subresource: "status" },
      never,
    );
  }

  /** Waits, with as little time passing as it takes. */
  async until(what: string, check: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
    const deadlineMs = this.clock.nowMs() + withinMs;
    for (let stepMs = 0; ; stepMs = Math.min(1_000, stepMs + 10)) {
      await this.clock.advance(stepMs);
      if (await check()) return;
      if (this.clock.nowMs() > deadlineMs) assert.fail(`not within ${withinMs} simulated ms: ${what}`);
    }
  }

  /** Lets time pass until a promise is settled. */
  async resolved<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = promise.finally(() => {
      isSettled = true;
    });
    settled.catch(() => undefined);
    await this.until("the promise settles", () => isSettled, 300_000);
    return settled;
  }

  async list<T extends KubeObject>(kind: ResourceKind<T>): Promise<readonly T[]> {
    return (await listAll(this.api, kind, {}, (object) => object, never)).items;
  }

  async replicaSets(): Promise<readonly ReplicaSet[]> {
    return this.list(replicaSets);
  }

  async replicaSetNames(): Promise<readonly string[]> {
    return (await this.replicaSets()).map(({ metadata }) => metadata?.name ?? "").sort();
  }

  async policies() {
    return this.list(ciliumNetworkPolicies);
  }

  async stop(): Promise<void> {
    for (const agent of [...this.agents]) await agent.stop();
    this.stopping.abort();
    await this.resolved(this.clusterDone);
    this.server.stop();
  }

  /** Sends each call to the control plane that answers at that time. */
  private balancedTransport(interceptors: readonly Interceptor[]): Transport {
    const transports = new Map<SimulatedRegion["answering"], Transport>();
    const current = () => {
      const { answering } = this;
      const known = transports.get(answering) ?? answering.createTransport(interceptors);
      transports.set(answering, known);
      return known;
    };
    return {
      unary: (...call) => current().unary(...call),
      stream: (...call) => current().stream(...call),
    };
  }

  private async startCluster(): Promise<void> {
    const server = createHandler(this.server);
    const handler: ApiHandler = (request, signal) => {
      const isNewPod = request.method === "POST" && request.path.endsWith("/pods");
      const body = isNewPod && this.podWebhook ? this.podWebhook(request.body as Pod) : request.body;
      return server(body === undefined ? request : { ...request, body }, signal);
    };
    await createFixture(handler, never);
    const { clock, random } = this;
    this.clusterDone = startControllers(handler, {}, { clock, random }, this.stopping.signal).done;
    await clock.advance(1_000);
  }
}

export function deployment(index: number, overrides: Parameters<typeof applyDeployment>[0] = {}) {
  return applyDeployment({ k8sName: `web-${index}`, deploymentId: `d_${index}`, ...overrides });
}
