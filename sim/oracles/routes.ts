// Routes of apps: a Service leads only to releases whose pods were ready, never back to an older one within one history of
// the control plane, and is deleted only on its order or after its row was absent. A release ends only when no Service leads to it.
import { labelKeys } from "../../src/model/labels.ts";
import type { AuditedChange, AuditRecord, LiveObject } from "../sim-cluster.ts";
import type { Oracle } from "../sim-region.ts";
import type { World } from "../world.ts";
import { managedChanges, nameOf, targetOf } from "./audit-view.ts";

const absenceMinMs = 100_000;

export class RoutesOracle implements Oracle {
  private readonly world: World;
  /** Deployments whose pods were once all ready, or that wanted none. */
  private readonly wereReady = new Set<string>();
  /** The place of the last target that was written, in the targets of its route. */
  private readonly written = new Map<string, number>();
  /** The newest order for each route when its Service was created, by the uid of the Service. */
  private readonly createdFor = new Map<string, number>();

  constructor(world: World) {
    this.world = world;
  }

  onChange({ plural, before, after }: AuditedChange): void {
    if (plural === "replicasets" && after !== undefined) this.noteReadiness(after);
    const id = after?.metadata.labels?.[labelKeys.routeId];
    if (plural === "services" && before === undefined && id !== undefined)
      this.createdFor.set(after?.metadata.uid ?? "", this.world.ledger.newestToRun("route", id));
  }

  onAudit(record: AuditRecord): void {
    for (const change of managedChanges(record)) {
      const id = (change.after ?? change.before)?.metadata.labels?.[labelKeys.routeId];
      if (change.plural !== "services" || id === undefined) continue;
      if (change.after === undefined) this.judgeDelete(record, change, id);
      else if (record.request.method !== "DELETE") this.judgeWrite(record, change, id);
    }
  }

  private noteReadiness({ metadata: { labels }, spec, status }: LiveObject): void {
    const { replicas = 0 } = spec as { replicas?: number };
    const { readyReplicas = 0 } = (status ?? {}) as { readyReplicas?: number };
    if (readyReplicas >= replicas) this.wereReady.add(labels?.[labelKeys.deploymentId] ?? "");
  }

  private judgeWrite(record: AuditRecord, change: AuditedChange, routeId: string): void {
    const target = targetOf(change.after);
    const targets = this.world.apps.targetsOf(routeId);
    const lastIndex = this.written.get(routeId) ?? 0;
    const index = targets.findLastIndex(({ deploymentId }) => deploymentId === target);
    const say = (what: string) =>
      this.world.violate("K3", `${record.actor} led ${nameOf(change)} to ${what}`);
    if (index < 0) say(`${target}, which the control plane never asked for`);
    const isOlder = index < lastIndex && (targets[index]?.epoch ?? 0) <= (targets[lastIndex]?.epoch ?? 0);
    if (isOlder) say(`${target} after ${targets[lastIndex]?.deploymentId}`);
    this.written.set(routeId, index);
    if (target !== "" && targetOf(change.before) !== target && !this.wereReady.has(target))
      this.world.violate("release", `${nameOf(change)} leads to ${target}, whose pods never were ready`);
  }

  private judgeDelete(record: AuditRecord, change: AuditedChange, routeId: string): void {
    const { ledger, clock } = this.world;
    const number = this.createdFor.get(change.before?.metadata.uid ?? "") ?? 0;
    if (ledger.stopAfter("route", routeId, number) !== undefined) return;
    const sinceMs = ledger.absentSinceMs("route", routeId) ?? Number.POSITIVE_INFINITY;
    if (clock.nowMs() - sinceMs < absenceMinMs)
      this.world.violate("K5", `${record.actor} deleted ${nameOf(change)} (${routeId}) without an order`);
  }
}
