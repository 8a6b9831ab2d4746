// A region in one process on a virtual clock: two agents, the control plane, the cluster and the vault, and the network
// between them. Nothing here opens a socket, waits for real time or reads a file.
import type { Interceptor } from "@connectrpc/connect";
import { type AnyKind, type KindName, kindNames } from "../src/kinds/kinds.ts";
import { createLog, type Log } from "../src/telemetry/log.ts";
import { Choices } from "./choices.ts";
import { Ledger } from "./ledger.ts";
import { SimAgent, type SimAgentDeps } from "./sim-agent.ts";
import { type AuditedChange, type AuditRecord, type LiveObject, SimCluster } from "./sim-cluster.ts";
import { type Backup, SimPlane, withoutVersions } from "./sim-plane.ts";
import { SimVault } from "./sim-vault.ts";
import { Trace } from "./trace.ts";
import { VirtualClock } from "./virtual-clock.ts";

export const region = "sim.test";
export const leaseName = `krane-${region}`;

export interface Violation {
  /** The invariant, for example "K5". */
  readonly invariant: string;
  readonly what: string;
  readonly atMs: number;
}

/** Watches a world from outside. It never reads the state of an agent. */
export interface Oracle {
  /** After every request that the API server executed. */
  onAudit?(record: AuditRecord): void;
  /** After every change of an object, whoever made it. */
  onChange?(change: AuditedChange, actor: string): void;
  /** For every line that an agent logs. */
  onLog?(who: string, line: string): void;
  /** For every call that the control plane accepts, before it is processed. */
  onCall?(method: string, message: unknown): void;
}

export interface SimRegionOptions {
  readonly seed: number;
  readonly kinds: readonly AnyKind[];
  /** Whether the control plane does; default true. */
  readonly namesIncarnation?: boolean;
  /** Whether its responses have versions; default true. */
  readonly sendsVersions?: boolean;
  readonly onTraceLine?: (line: string) => void;
  readonly interfere?: SimAgentDeps["interfere"];
}

export class SimRegion {
  readonly seed: number;
  readonly clock = new VirtualClock();
  readonly trace: Trace;
  readonly cluster: SimCluster;
  readonly vault: SimVault;
  readonly ledger = new Ledger();
  readonly agents: readonly SimAgent[];
  readonly plane: SimPlane;
  /** Of the control plane's database. */
  readonly backups: Backup[] = [];
  violation: Violation | undefined;
  /** Whether an agent learns from the control plane's responses which version it has. */
  readonly sendsVersions: boolean;
  /** The uids of what agents created. */
  private readonly ofAgents = new Set<string>();
  private readonly oracles: Oracle[] = [];
  isOver = false;
  /** While false, an agent that ends is not started again. */
  private isKubeletUp = true;

  constructor(options: SimRegionOptions) {
    const { seed, kinds, onTraceLine, interfere } = options;
    this.seed = seed;
    this.sendsVersions = options.sendsVersions ?? true;
    this.trace = new Trace(() => this.clock.nowMs(), onTraceLine);
    this.vault = new SimVault(this.clock);
    this.cluster = new SimCluster({
      clock: this.clock,
      choices: new Choices(seed, "cluster"),
      onAudit: (record) => this.audited(record),
      onChange: (change, actor) => {
        const { before, after } = change;
        if (before === undefined && after !== undefined && actor.startsWith("agent "))
          this.ofAgents.add(after.metadata.uid ?? "");
        for (const oracle of this.oracles) oracle.onChange?.(change, actor);
      },
    });
    this.plane = new SimPlane({
      clock: this.clock,
      log: this.quietLog(),
      region,
      namesIncarnation: options.namesIncarnation ?? true,
      interceptors: [this.observeCalls(), ...(this.sendsVersions ? [] : [withoutVersions])],
    });
    const { clock, cluster, plane, vault } = this;
    const deps = { seed, region, clock, cluster, plane, vault, kinds, ...(interfere && { interfere }) };
    this.agents = ["a", "b"].map(
      (name) =>
        new SimAgent(name, {
          ...deps,
          trace: (who, what) => this.trace.add(who, what),
          onLog: (who, line) => {
            for (const oracle of this.oracles) oracle.onLog?.(who, line);
          },
          onExit: (agent) => this.startLater(agent, 2_000),
          onLeftBehind: (what) => this.violate("K10", what),
        }),
    );
  }

  async start(): Promise<void> {
    await this.plane.store.registerRegion(region);
    const started = this.cluster.start();
    await this.clock.runUntil(2_000);
    await started;
  }

  watch(oracle: Oracle): void {
    this.oracles.push(oracle);
  }

  /** The first one ends the run. */
  violate(invariant: string, what: string): void {
    if (this.violation !== undefined) return;
    this.violation = { invariant, what, atMs: this.clock.nowMs() };
    this.trace.add("oracle", `${invariant}: ${what}`);
  }

  /** Whether an agent created the object. */
  isOfAgents({ metadata: { uid = "" } }: LiveObject): boolean {
    return this.ofAgents.has(uid);
  }

  /** Whether a ReplicaSet that an agent created made the pod. */
  isTenantPod({ metadata: { ownerReferences = [] } }: LiveObject): boolean {
    return ownerReferences.some(({ kind, uid }) => kind === "ReplicaSet" && this.ofAgents.has(uid));
  }

  async runFor(ms: number): Promise<void> {
    await this.clock.runUntil(this.clock.nowMs() + ms, () => this.violation !== undefined);
  }

  startLater(agent: SimAgent, afterMs: number): void {
    this.clock.setTimer(afterMs, () => {
      if (this.isKubeletUp) agent.start();
    });
  }

  /** The control plane has other rows than before. */
  async notePlaneRows(): Promise<void> {
    const tables = await Promise.all(
      kindNames.map(async (kind) =>
        (await this.plane.store.rows(region, kind)).map((row) => ({
          kind,
          id: row.id,
          number: kind === "route" ? this.ledger.newestToRun(kind, row.id) : this.numberIn(kind, row.spec),
          isStopped: row.desired === "stopped",
        })),
      ),
    );
    const rows = tables.flat();
    const text = rows.map(({ id, number, isStopped }) => `${id}:${isStopped ? "deleted" : number}`).join(" ");
    this.trace.add("control plane", `has ${text || "no rows"}`);
    this.ledger.restored(rows, this.clock.nowMs());
  }

  /** The number of the order that a spec comes from. A route has none in it. */
  numberIn(kind: Exclude<KindName, "route">, spec: unknown): number {
    if (kind === "policy") {
      const { policy } = spec as { readonly policy: Uint8Array };
      return Number(/"port":"(\d+)"/.exec(Buffer.from(policy).toString())?.[1] ?? 0) - this.ledger.portOf(0);
    }
    return Number((spec as { readonly image: string }).image.split(":").at(-1));
  }

  /** Ends everything without a word, when the run is over. */
  abandon(): void {
    this.isOver = true;
    this.isKubeletUp = false;
    for (const agent of this.agents) agent.kill();
    this.cluster.stop();
  }

  private audited(record: AuditRecord): void {
    const { actor, request, status, changes } = record;
    if (actor !== "cluster")
      this.trace.add(
        actor,
        `${request.method} ${request.path} ${status}${changes.length > 0 ? " changed" : ""}`,
      );
    for (const oracle of this.oracles) oracle.onAudit?.(record);
  }

  private observeCalls(): Interceptor {
    return (next) => async (request) => {
      this.trace.add("control plane", request.method.name);
      if (!request.stream)
        for (const oracle of this.oracles) oracle.onCall?.(request.method.name, request.message);
      return next(request);
    };
  }

  private quietLog(): Log {
    return createLog(
      {
        level: "error",
        instance: { id: "server", region, version: "0" },
        sampling: { rate: 0, slowThresholdMs: 0 },
      },
      { write: () => undefined, random: new Choices(this.seed, "server log"), clock: this.clock },
    );
  }
}
