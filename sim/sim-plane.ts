// The control plane of a world: the real one on its store in memory. It can be restarted, restored from a backup, emptied,
// and replaced by a replica that lags.
import type { Interceptor } from "@connectrpc/connect";
import type { Clock } from "../src/concurrency/clock.ts";
import { Secret } from "../src/config/secret.ts";
import type { App } from "../src/gen/krane/admin/v1/app_pb.ts";
import { type KindName, kindNames } from "../src/kinds/kinds.ts";
import { createInMemoryControlPlane, type InMemoryControlPlane } from "../src/server/in-process.ts";
import type { MemoryStore } from "../src/server/memory-store.ts";
import type { Row } from "../src/server/store.ts";
import type { Log } from "../src/telemetry/log.ts";

export const controlToken = "sim-control-plane-token";

/** The responses of the original's control plane have no version; its streams do. */
export const withoutVersions: Interceptor = (next) => async (call) => {
  const response = await next(call);
  const { message } = response;
  if (!response.stream && "version" in message) Object.assign(message, { version: 0n });
  return response;
};

const appsMax = 1_000;

export interface Backup {
  readonly incarnation: Awaited<ReturnType<MemoryStore["incarnation"]>>;
  readonly counter: bigint;
  readonly rows: readonly (readonly [KindName, Row<KindName>])[];
  readonly apps: readonly App[];
}

export interface SimPlaneDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly region: string;
  /** Whether it names its incarnation. Older ones do not, and have no digests. */
  readonly namesIncarnation: boolean;
  /** See every authenticated call. */
  readonly interceptors: readonly Interceptor[];
}

export class SimPlane {
  private readonly deps: SimPlaneDeps;
  private plane: InMemoryControlPlane;
  /** Answers agents instead of the primary, if set. */
  private replica: InMemoryControlPlane | undefined;
  private downUntilMs = 0;

  constructor(deps: SimPlaneDeps) {
    this.deps = deps;
    this.plane = this.open();
  }

  get store(): MemoryStore {
    return this.plane.store;
  }

  get namesIncarnation(): boolean {
    return this.deps.namesIncarnation;
  }

  get isDown(): boolean {
    return this.deps.clock.nowMs() < this.downUntilMs;
  }

  /** The server that answers agents now. */
  answering(): InMemoryControlPlane | undefined {
    return this.isDown ? undefined : (this.replica ?? this.plane);
  }

  /** Ends every stream; no call is answered for that time. */
  goDown(forMs: number): void {
    this.plane.faults.cutStreams();
    this.replica?.faults.cutStreams();
    this.downUntilMs = Math.max(this.downUntilMs, this.deps.clock.nowMs() + forMs);
  }

  cutStreams(): void {
    (this.replica ?? this.plane).faults.cutStreams();
  }

  /** Agents reach the primary again. */
  endLag(): void {
    this.replica?.faults.cutStreams();
    this.replica = undefined;
  }

  heal(): void {
    this.endLag();
    this.downUntilMs = 0;
  }

  async backup(): Promise<Backup> {
    const { region } = this.deps;
    const tables = await Promise.all(
      kindNames.map(async (kind) => (await this.store.rows(region, kind)).map((row) => [kind, row] as const)),
    );
    const [agent] = await this.store.agents(region);
    const incarnation = await this.store.incarnation();
    const apps = (await this.store.apps(region, "", appsMax)).flatMap(({ app }) => app ?? []);
    return { incarnation, counter: agent?.newestVersion ?? 0n, rows: tables.flat(), apps };
  }

  /** The database is the backup from now on. The server notices when an agent tells it what it has seen. */
  async restore(backup: Backup): Promise<void> {
    this.plane.faults.cutStreams();
    this.plane = await this.fromBackup(backup, false);
  }

  /** The region's rows are gone, in a new database. */
  async empty(): Promise<void> {
    const incarnation = await this.store.incarnation();
    this.plane.faults.cutStreams();
    this.plane = await this.fromBackup({ incarnation, counter: 0n, rows: [], apps: [] }, false);
  }

  /** Agents reach another server that claims the same history, with these rows. */
  async pretend(backup: Backup): Promise<void> {
    this.plane.faults.cutStreams();
    this.replica?.faults.cutStreams();
    this.replica = await this.fromBackup(backup, false);
  }

  /** Agents reach a replica that has only what the backup has. */
  async lag(backup: Backup): Promise<void> {
    this.plane.faults.cutStreams();
    this.replica = await this.fromBackup(backup, true);
  }

  private async fromBackup({ incarnation, counter, rows, apps }: Backup, isReplica: boolean) {
    const plane = this.open(incarnation && { ...incarnation, isReplica });
    await plane.store.registerRegion(this.deps.region);
    for (const [kind, row] of rows) plane.store.insertSilently(this.deps.region, kind, row);
    for (const app of apps) plane.store.insertAppSilently(this.deps.region, app);
    plane.store.setCounter(this.deps.region, counter);
    return plane;
  }

  private open(incarnation?: Backup["incarnation"]): InMemoryControlPlane {
    const { clock, log, interceptors, namesIncarnation } = this.deps;
    const named = namesIncarnation ? incarnation && { incarnation } : ({ incarnation: "unnamed" } as const);
    const tokens = [new Secret(controlToken)];
    return createInMemoryControlPlane({ tokens, interceptors, ...named }, { clock, log });
  }
}
