// What tests do to the desired state of a control plane, and what they read of the reports. It goes to the store itself,
// past the admin API: tests want objects that the API refuses, rows that vanish without an order, and changes that are
// made before anything else can run.
import type { Clock } from "../../src/concurrency/clock.ts";
import type { ApplyInit, ApplyMessage, KindName, ReportOf } from "../../src/kinds/kinds.ts";
import { createInMemoryControlPlane, type InMemoryControlPlane } from "../../src/server/in-process.ts";
import { createSpec } from "../../src/server/kind-messages.ts";
import { stopping } from "../../src/server/row-rules.ts";
import type { AgentRecord, Row, Store } from "../../src/server/store.ts";

/** Changes resolve with their version, and reject where there is nothing to change. */
export interface StoreAdmin {
  registerRegion(region: string): Promise<void>;
  regions(): Promise<readonly string[]>;

  setDeployment(region: string, deployment: ApplyInit<"deployment">): Promise<bigint>;
  scale(region: string, deploymentId: string, replicas: number): Promise<bigint>;
  /** Orders its deletion, and that of the policies that belong to it. */
  deleteDeployment(region: string, deploymentId: string): Promise<bigint>;
  /** Makes the row vanish without an order, as a fault of the control plane would. */
  forgetDeployment(region: string, deploymentId: string): Promise<void>;
  deployments(region: string): Promise<readonly Row<"deployment">[]>;
  /** The last report on a deployment; undefined before the first. */
  deploymentReport(region: string, deploymentId: string): Promise<ReportOf<"deployment"> | undefined>;
  /** The instances of that report. */
  instances(region: string, deploymentId: string): Promise<ReportOf<"deployment">["instances"]>;

  setSentinel(region: string, sentinel: ApplyInit<"sentinel">): Promise<bigint>;
  scaleSentinel(region: string, sentinelId: string, replicas: number): Promise<bigint>;
  deleteSentinel(region: string, sentinelId: string): Promise<bigint>;
  forgetSentinel(region: string, sentinelId: string): Promise<void>;
  sentinels(region: string): Promise<readonly Row<"sentinel">[]>;
  sentinelStatus(region: string, sentinelId: string): Promise<ReportOf<"sentinel"> | undefined>;

  /** With a deployment it belongs to, it is deleted when that is. */
  setPolicy(region: string, policy: ApplyInit<"policy">, deploymentId?: string): Promise<bigint>;
  deletePolicy(region: string, policyId: string): Promise<bigint>;
  forgetPolicy(region: string, policyId: string): Promise<void>;
  policies(region: string): Promise<readonly Row<"policy">[]>;

  setRoute(region: string, route: ApplyInit<"route">): Promise<bigint>;
  deleteRoute(region: string, routeId: string): Promise<bigint>;
  routeReport(region: string, routeId: string): Promise<ReportOf<"route"> | undefined>;

  grantHostname(name: string, workspaceId: string): Promise<unknown>;

  /** Heartbeat and state of the agent of each region. */
  agents(): Promise<readonly AgentRecord[]>;
}

export interface StoreAdminDeps {
  readonly clock: Clock;
  /** In whose name changes are made. */
  readonly by: string;
}

export function createStoreAdmin(store: Store, { clock, by }: StoreAdminDeps): StoreAdmin {
  const author = () => ({ by, atMs: clock.wallMs() });
  const set = <K extends KindName>(region: string, kind: K, spec: ApplyInit<K>, deploymentId?: string) =>
    store.put(region, kind, createSpec(kind, spec), author(), {
      ...(deploymentId !== undefined && { deploymentId }),
    });
  const scale = async (region: string, kind: "deployment" | "sentinel", id: string, replicas: number) => {
    const rescale = <K extends "deployment" | "sentinel">(k: K) =>
      store.edit(region, k, id, (spec) => withReplicas(k, spec, replicas), author());
    return found(await rescale(kind), region, kind, id);
  };
  const stop = async (region: string, kind: KindName, id: string) =>
    found(await store.stop(region, kind, id, author()), region, kind, id);
  const forget = async (region: string, kind: KindName, id: string) => {
    found((await store.remove(region, kind, id, author())) || undefined, region, kind, id);
  };
  return {
    registerRegion: (region) => store.registerRegion(region),
    regions: () => store.regions(),
    setDeployment: (region, deployment) => set(region, "deployment", deployment),
    scale: (region, id, replicas) => scale(region, "deployment", id, replicas),
    async deleteDeployment(region, id) {
      const withOwned = true;
      const changed = store.change(region, "deployment", id, stopping("deployment"), author(), {
        withOwned,
      });
      return found((await changed).after?.version, region, "deployment", id);
    },
    forgetDeployment: (region, id) => forget(region, "deployment", id),
    deployments: (region) => store.rows(region, "deployment"),
    deploymentReport: (region, id) => lastReport(store, region, "deployment", id),
    instances: async (region, id) => (await lastReport(store, region, "deployment", id))?.instances ?? [],
    setSentinel: (region, sentinel) => set(region, "sentinel", sentinel),
    scaleSentinel: (region, id, replicas) => scale(region, "sentinel", id, replicas),
    deleteSentinel: (region, id) => stop(region, "sentinel", id),
    forgetSentinel: (region, id) => forget(region, "sentinel", id),
    sentinels: (region) => store.rows(region, "sentinel"),
    sentinelStatus: (region, id) => lastReport(store, region, "sentinel", id),
    setPolicy: (region, policy, deploymentId) => set(region, "policy", policy, deploymentId),
    deletePolicy: (region, id) => stop(region, "policy", id),
    forgetPolicy: (region, id) => forget(region, "policy", id),
    policies: (region) => store.rows(region, "policy"),
    setRoute: (region, route) => set(region, "route", route),
    deleteRoute: (region, id) => stop(region, "route", id),
    routeReport: (region, id) => lastReport(store, region, "route", id),
    grantHostname: (name, workspaceId) => store.hostnames.grant({ name, workspaceId, ...author() }),
    agents: () => store.agents(),
  };
}

function withReplicas<K extends "deployment" | "sentinel">(
  kind: K,
  spec: ApplyMessage<K>,
  replicas: number,
): ApplyMessage<K> {
  const copy = createSpec(kind, spec as ApplyInit<K>);
  copy.replicas = replicas;
  return copy;
}

function found<T>(answer: T | undefined, region: string, kind: KindName, id: string): T {
  if (answer === undefined) throw new Error(`no ${kind} ${id} in region ${region}`);
  return answer;
}

async function lastReport<K extends KindName>(store: Store, region: string, kind: K, id: string) {
  return (await store.object(region, kind, id))?.report;
}

export type TestPlane = Omit<InMemoryControlPlane, "admin"> & { readonly admin: StoreAdmin };

/** A whole control plane in memory, with its store behind `admin`. */
export function createTestPlane(
  ...[options, deps]: Parameters<typeof createInMemoryControlPlane>
): TestPlane {
  const plane = createInMemoryControlPlane(options, deps);
  return { ...plane, admin: createStoreAdmin(plane.store, { clock: deps.clock, by: "admin" }) };
}
