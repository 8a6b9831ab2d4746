// K3 and K5: what an agent writes never goes back to an older order within one history of the control plane, and nothing is
// deleted without an order or a confirmed absence.
import type { KindName } from "../../src/kinds/kinds.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { isCalled } from "../caller.ts";
import { type OrderedObject, orderBehind } from "../ledger.ts";
import type { AuditedChange, AuditRecord, LiveObject } from "../sim-cluster.ts";
import type { Oracle } from "../sim-region.ts";
import type { World } from "../world.ts";
import { managedChanges, nameOf } from "./audit-view.ts";

// Two of the three confirmations are a minute apart, and a pass may be early by its jitter.
const absenceMinMs = 100_000;
// Kubernetes writes the time of creation in whole seconds.
const ageMinMs = 299_000;
// Ten minutes, as the agent counts from its decisions; their requests may take seconds.
const budgetWindowMs = 590_000;
const budgetMin = 3;
const budgetFraction = 0.2;

export class OrdersOracle implements Oracle {
  private readonly world: World;
  /** The newest order that was carried out, for each object. */
  private readonly newest = new Map<string, number>();
  private readonly createdMs = new Map<string, number>();
  /** What each object was created for; people may change its labels later. */
  private readonly createdFor = new Map<string, OrderedObject>();
  private readonly absenceDeletes: { readonly atMs: number; readonly kind: string }[] = [];

  constructor(world: World) {
    this.world = world;
  }

  onChange({ plural, before, after }: AuditedChange): void {
    if (before !== undefined || after === undefined) return;
    const { uid = "" } = after.metadata;
    this.createdMs.set(uid, this.world.clock.nowMs());
    const ordered = orderBehind(plural, after);
    if (ordered !== undefined) this.createdFor.set(uid, ordered);
  }

  onAudit(record: AuditRecord): void {
    for (const change of managedChanges(record)) {
      if (change.plural === "pods") continue;
      if (change.after !== undefined) this.judgeWrite(record, change, change.after);
      else if (change.before !== undefined) this.judgeDelete(record, change, change.before);
    }
  }

  private judgeWrite(record: AuditRecord, change: AuditedChange, after: LiveObject): void {
    const written = orderBehind(change.plural, after);
    if (written === undefined) return;
    const { kind, id, number } = written;
    const key = `${kind} ${id}`;
    const order = this.world.ledger.order(number);
    if (order?.id !== id) {
      this.world.violate(
        "K3",
        `${record.actor} wrote order ${number} to ${nameOf(change)}, which is not about ${id}`,
      );
      return;
    }
    const newest = this.newest.get(key) ?? 0;
    const newestEpoch = this.world.ledger.order(newest)?.epoch ?? 0;
    if (number < newest && order.epoch <= newestEpoch)
      this.world.violate(
        "K3",
        `${record.actor} wrote order ${number} to ${nameOf(change)} after order ${newest}`,
      );
    this.newest.set(key, number);
  }

  private judgeDelete(record: AuditRecord, change: AuditedChange, before: LiveObject): void {
    const created = this.createdFor.get(before.metadata.uid ?? "");
    if (created === undefined) {
      this.judgeCompanion(record, change, before);
      return;
    }
    const ordered = { ...created, number: orderBehind(change.plural, before)?.number ?? created.number };
    const stop = this.world.ledger.stopAfter(ordered.kind, ordered.id, ordered.number);
    if (stop !== undefined) this.newest.set(`${ordered.kind} ${ordered.id}`, stop.number);
    else this.judgeAbsence(record, change, before, ordered);
  }

  private judgeAbsence(
    record: AuditRecord,
    change: AuditedChange,
    before: LiveObject,
    { kind, id }: OrderedObject,
  ): void {
    const nowMs = this.world.clock.nowMs();
    const sinceMs = this.world.ledger.absentSinceMs(kind, id);
    const why = (text: string) =>
      this.world.violate("K5", `${record.actor} deleted ${nameOf(change)} (${id}): ${text}`);
    const { known, all } = this.knownOf(kind, change.plural);
    if (2 * known < all) why(`the control plane has only ${known} of ${all} objects`);
    const ageMs = nowMs - (this.createdMs.get(before.metadata.uid ?? "") ?? 0);
    if (sinceMs === undefined) why("the control plane has it, and never ordered to delete it");
    else if (nowMs - sinceMs < absenceMinMs) why(`absent for only ${Math.round((nowMs - sinceMs) / 1000)} s`);
    else if (ageMs < ageMinMs) why(`only ${Math.round(ageMs / 1000)} s old`);
    this.absenceDeletes.push({ atMs: nowMs, kind });
    const recent = this.absenceDeletes.filter(
      (each) => each.kind === kind && nowMs - each.atMs < budgetWindowMs,
    ).length;
    const managed = all + recent;
    if (recent > Math.max(budgetMin, Math.ceil(managed * budgetFraction)))
      why(`${recent} deletes for absence in 10 minutes`);
  }

  /** How many live objects of a kind the control plane has, or has had until a short time ago. */
  private knownOf(kind: KindName, plural: string): { readonly known: number; readonly all: number } {
    const nowMs = this.world.clock.nowMs();
    // Copies that people made have the same labels. Of orders by calls, the control plane need not know.
    const since = this.world.cluster
      .list(plural, groupOf(plural))
      .filter((object) => this.world.isOfAgents(object))
      .flatMap((object) => orderBehind(plural, object) ?? [])
      .filter((ordered) => ordered.kind === kind && !isCalled(ordered.id))
      .map(({ id }) => this.world.ledger.absentSinceMs(kind, id));
    // An agent judges by its last passes, so what vanished since counts as known.
    const known = since.filter((sinceMs) => sinceMs === undefined || nowMs - sinceMs < absenceMinMs).length;
    return { known, all: since.length };
  }

  /** The ingress policy of an environment goes only when nothing needs it. */
  private judgeCompanion(record: AuditRecord, change: AuditedChange, before: LiveObject): void {
    if (change.plural !== "ciliumnetworkpolicies") return;
    const { namespace, labels = {} } = before.metadata;
    if (labels[labelKeys.routeId] !== undefined) return;
    const environment = labels[labelKeys.environmentId];
    const users = this.world.cluster
      .list("replicasets", "apps")
      .filter(
        ({ metadata }) =>
          metadata.namespace === namespace && metadata.labels?.[labelKeys.environmentId] === environment,
      )
      .filter((each) => this.world.isOfAgents(each));
    if (users.length > 0)
      this.world.violate(
        "K8",
        `${record.actor} deleted ${nameOf(change)}, which ${users[0]?.metadata.name} needs`,
      );
  }
}

function groupOf(plural: string): string {
  return plural === "ciliumnetworkpolicies" ? "cilium.io" : "apps";
}
