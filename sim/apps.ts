// Apps at the control plane of a world: people release new images, scale and delete apps, and the control plane's own
// release machine takes its steps. What it asks agents for goes into the ledger as orders.
import { create } from "@bufbuild/protobuf";
import { ApplyRoute_Expose as Expose } from "../src/gen/ctrl/v1/route_pb.ts";
import { type AppSpec, AppSpecSchema, Release_Phase as Phase } from "../src/gen/krane/admin/v1/app_pb.ts";
import type { KindName } from "../src/kinds/kinds.ts";
import { labelKeys } from "../src/model/labels.ts";
import { firstNumber, idOfApp } from "../src/server/apps/app-rules.ts";
import { advanceReleases, releaseStepsEveryMs } from "../src/server/apps/release-steps.ts";
import { hasEnded, isActive, withSpec } from "../src/server/apps/releases.ts";
import type { AppFacts, Row } from "../src/server/store.ts";
import type { Choices } from "./choices.ts";
import { targetOf } from "./oracles/audit-view.ts";
import { namespaces } from "./places.ts";
import { region, type SimRegion } from "./sim-region.ts";
import { canary } from "./sim-vault.ts";

const never = new AbortController().signal;
const policy = { readySeconds: 5, deadlineSeconds: 120, drainSeconds: 5, history: 3 };
const exposures = [Expose.CLUSTER, Expose.ENVIRONMENT, Expose.ENVIRONMENT, Expose.UNSPECIFIED] as const;
const appsMax = 1_000;

/** Where a route led, since when, and in which history of the control plane. */
export interface Target {
  readonly deploymentId: string;
  readonly epoch: number;
}

export class Apps {
  private readonly world: SimRegion;
  /** What the control plane last asked for, by kind and id. */
  private readonly wanted = new Map<string, "running" | "stopped">();
  private readonly targets = new Map<string, Target[]>();

  constructor(world: SimRegion) {
    this.world = world;
  }

  start(): void {
    this.world.clock.setTimer(releaseStepsEveryMs, () => {
      if (this.world.isOver || this.world.violation !== undefined) return;
      void this.step();
      this.start();
    });
  }

  /** Every target that a route has had, oldest first. */
  targetsOf(routeId: string): readonly Target[] {
    return this.targets.get(routeId) ?? [];
  }

  /** Releases an image of its own, which has the number of the order. */
  async release(choices: Choices): Promise<void> {
    const { world } = this;
    const namespace = choices.one(namespaces);
    const environmentId = `env_${namespace}${choices.index(2)}`;
    const id = `app_${namespace}${environmentId.at(-1)}`;
    const template = {
      k8sNamespace: namespace,
      k8sName: `${namespace}-shop-${environmentId.at(-1)}`,
      workspaceId: `ws_${namespace}`,
      projectId: `proj_${namespace}`,
      environmentId,
      deploymentId: id,
      image: `registry.example/${namespace}/web:${world.ledger.next}`,
      replicas: 1 + choices.index(2),
      cpuMillicores: 250n,
      memoryMib: 256n,
      port: 8080 + choices.index(2),
    };
    const secrets = choices.chance(0.3) ? world.vault.blobOf(environmentId, `${canary}${environmentId}`) : [];
    const spec = create(AppSpecSchema, { template, policy, expose: choices.one(exposures) });
    await this.change(id, "releases an image", ({ app, leftIds }) =>
      withSpec(
        app,
        spec,
        { ...this.author(), cause: "applied", secrets: new Uint8Array(secrets) },
        firstNumber(id, leftIds),
      ),
    );
  }

  async scale(choices: Choices): Promise<void> {
    const id = await this.any(choices);
    if (id === undefined) return;
    const replicas = choices.index(4);
    await this.change(id, `gets ${replicas} replicas`, ({ app }) => {
      const { template } = app?.spec ?? {};
      const newest = app?.releases.at(-1);
      // Otherwise it would be released again, with the image of an older order.
      if (app?.spec === undefined || template === undefined || newest === undefined || hasEnded(newest))
        return undefined;
      const spec: AppSpec = { ...app.spec, template: { ...template, replicas } };
      return withSpec(app, spec, { ...this.author(), cause: "applied", secrets: new Uint8Array() });
    });
  }

  async remove(choices: Choices): Promise<void> {
    const id = await this.any(choices);
    if (id !== undefined) await this.change(id, "is deleted", () => "removed");
  }

  /** Apps with a release that has neither become current nor ended. */
  async unfinished(): Promise<readonly string[]> {
    return (await this.all()).flatMap(({ app }) => (app && isActive(app) ? [idOfApp(app)] : []));
  }

  /** The control plane's database is another one: what it wants is no news. */
  async restored(): Promise<void> {
    this.wanted.clear();
    await this.note(() => undefined);
  }

  private async step(): Promise<void> {
    const { plane, clock, ledger } = this.world;
    if (plane.isDown || (await plane.store.activeApps()).length === 0) return;
    try {
      await advanceReleases(plane.store, clock.wallMs(), never);
      await this.note((kind, id, desired) => ledger.add(kind, id, desired));
    } catch (error) {
      this.world.violate("simulation", error instanceof Error ? String(error.stack) : String(error));
    }
  }

  private async change(
    id: string,
    what: string,
    decide: (facts: AppFacts) => ReturnType<typeof withSpec> | "removed" | undefined,
  ) {
    const { plane, trace, ledger } = this.world;
    trace.add("people", `app ${id} ${what}`);
    try {
      await plane.store.changeApp(region, id, decide, this.author());
    } catch (error) {
      trace.add("people", `cannot change app ${id}: ${error instanceof Error ? error.message : ""}`);
    }
    await this.note((kind, key, desired) => ledger.add(kind, key, desired));
  }

  private author() {
    return { by: "sim", atMs: this.world.clock.wallMs() };
  }

  private async any(choices: Choices): Promise<string | undefined> {
    const ids = (await this.all()).flatMap(({ app }) => (app === undefined ? [] : [idOfApp(app)]));
    return ids.length === 0 ? undefined : choices.one(ids);
  }

  private all(): Promise<readonly AppFacts[]> {
    return this.world.plane.store.apps(region, "", appsMax);
  }

  /** Tells what the control plane newly asks for. What it starts comes first: its image has the next number. */
  private async note(
    tell: (kind: "deployment" | "route", id: string, desired: "running" | "stopped") => void,
  ): Promise<void> {
    const { store } = this.world.plane;
    const tables = {
      deployment: (await store.rows(region, "deployment")).filter(({ appId }) => appId !== undefined),
      route: await store.rows(region, "route"),
    };
    for (const desired of ["running", "stopped"] as const)
      for (const kind of ["deployment", "route"] as const)
        for (const row of tables[kind]) {
          const key = `${kind} ${row.id}`;
          if (row.desired !== desired || this.wanted.get(key) === desired) continue;
          const isNew = desired === "running" || this.wanted.has(key);
          this.wanted.set(key, desired);
          if (!isNew) continue;
          this.world.trace.add("control plane", `wants ${key} ${desired}`);
          if (desired === "stopped" && kind === "deployment") this.judgeEnd(row, tables.route);
          tell(kind, row.id, desired);
        }
    for (const { id, spec, desired } of tables.route)
      if (desired === "running") this.noteTarget(id, spec.deploymentId);
    this.judge(await this.all());
  }

  private noteTarget(routeId: string, deploymentId: string): void {
    const known = this.targets.get(routeId) ?? [];
    const { epoch } = this.world.ledger;
    const last = known.at(-1);
    if (last?.deploymentId === deploymentId && last.epoch === epoch) return;
    this.targets.set(routeId, [...known, { deploymentId, epoch }]);
    this.world.trace.add("control plane", `route ${routeId} leads to ${deploymentId || "nothing"}`);
  }

  /** A release ends only after traffic has left it, unless its app is deleted. */
  private judgeEnd({ id, appId }: Row<KindName>, routes: readonly Row<"route">[]): void {
    const route = routes.find((each) => each.appId === appId && each.desired === "running");
    if (route === undefined) return;
    const { epoch } = this.world.ledger;
    const wasTarget = this.targetsOf(route.id).some(
      (each) => each.deploymentId === id && each.epoch === epoch,
    );
    const service = this.world.cluster
      .list("services")
      .find((each) => each.metadata.labels?.[labelKeys.routeId] === route.id && this.world.isOfAgents(each));
    if (wasTarget && targetOf(service) === id)
      this.world.violate("release", `release ${id} ended while its route still led to it`);
  }

  private judge(apps: readonly AppFacts[]): void {
    for (const { app } of apps)
      for (const phase of [Phase.CURRENT, Phase.STARTING]) {
        const count = app?.releases.filter((release) => release.phase === phase).length ?? 0;
        if (app !== undefined && count > 1)
          this.world.violate("release", `app ${idOfApp(app)} has ${count} releases of phase ${phase}`);
      }
  }
}
