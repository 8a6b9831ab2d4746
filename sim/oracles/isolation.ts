// K8 and K13: a workload is created only after its network policy and with its runtime class, and only the holder of the
// lease writes.
import { labelKeys } from "../../src/model/labels.ts";
import { ownNamespace } from "../sim-agent.ts";
import type { AuditedChange, AuditRecord, LiveObject } from "../sim-cluster.ts";
import { leaseName, type Oracle } from "../sim-region.ts";
import type { World } from "../world.ts";
import { isAgent, managedChanges, nameOf } from "./audit-view.ts";

// A workload relies on a policy that was read at most a second before its write was sent, which may take half of the lease.
const readMaxMs = 9_000;

export class IsolationOracle implements Oracle {
  private readonly world: World;
  /** When somebody deleted the last policy of an environment, and the uid of its namespace then. */
  private readonly deleted = new Map<string, { readonly atMs: number; readonly namespaceUid: string }>();

  constructor(world: World) {
    this.world = world;
  }

  onChange({ plural, before, after }: AuditedChange, actor: string): void {
    if (plural !== "ciliumnetworkpolicies" || before === undefined || after !== undefined) return;
    const { namespace = "", labels = {} } = before.metadata;
    if (isAgent(actor) || !this.world.isOfAgents(before) || labels[labelKeys.routeId] !== undefined) return;
    const namespaceUid = this.namespaceUid(namespace);
    const key = `${namespace} ${labels[labelKeys.environmentId]}`;
    this.deleted.set(key, { atMs: this.world.clock.nowMs(), namespaceUid });
  }

  onAudit(record: AuditRecord): void {
    for (const change of managedChanges(record)) {
      // A finalizer keeps a deleted object, and then it is written too.
      if (change.plural !== "replicasets" || change.after === undefined || record.request.method === "DELETE")
        continue;
      const { namespace = "", labels = {} } = change.after.metadata;
      const spec = (change.after["spec"] as { template?: { spec?: { runtimeClassName?: string } } }).template
        ?.spec;
      if (spec?.runtimeClassName !== "gvisor")
        this.world.violate("K8", `${record.actor} wrote ${nameOf(change)} without its runtime class`);
      if (change.before !== undefined) continue;
      const environment = labels[labelKeys.environmentId];
      const hasPolicy = this.world.cluster
        .list("ciliumnetworkpolicies", "cilium.io")
        .some((policy) => this.world.isOfAgents(policy) && isFor(policy, namespace, environment));
      if (!hasPolicy && !this.wasJustDeleted(namespace, environment))
        this.world.violate("K8", `${record.actor} created ${nameOf(change)} before its network policy`);
    }
  }

  /** By somebody else, so recently that the agent could not know. */
  private wasJustDeleted(namespace: string, environment: string | undefined): boolean {
    const deleted = this.deleted.get(`${namespace} ${environment}`);
    if (deleted === undefined || this.world.clock.nowMs() - deleted.atMs > readMaxMs) return false;
    return deleted.namespaceUid !== "" && deleted.namespaceUid === this.namespaceUid(namespace);
  }

  private namespaceUid(name: string): string {
    return this.world.cluster.get("namespaces", "", "", name)?.metadata.uid ?? "";
  }
}

function isFor(
  { metadata }: LiveObject,
  namespace: string | undefined,
  environment: string | undefined,
): boolean {
  const { namespace: own, labels = {} } = metadata;
  const isOfRoute = labels[labelKeys.routeId] !== undefined;
  return own === namespace && labels[labelKeys.environmentId] === environment && !isOfRoute;
}

export class LeaseOracle implements Oracle {
  private readonly world: World;
  /** The name under which each agent holds the lease. */
  private readonly identities = new Map<string, string>();

  constructor(world: World) {
    this.world = world;
  }

  onAudit(record: AuditRecord): void {
    if (!isAgent(record.actor)) return;
    for (const { plural, after } of record.changes) {
      const holder = plural === "leases" ? holderOf(after) : undefined;
      if (holder !== undefined) this.identities.set(holder, this.identities.get(holder) ?? record.actor);
    }
    const [change] = managedChanges(record);
    if (change === undefined) return;
    const lease = this.world.cluster.get("leases", "coordination.k8s.io", ownNamespace, leaseName);
    const holder = holderOf(lease) ?? "";
    if (this.identities.get(holder) !== record.actor)
      this.world.violate(
        "K13",
        `${record.actor} changed ${nameOf(change)} while ${holder || "nobody"} holds the lease`,
      );
  }
}

function holderOf(lease: LiveObject | undefined): string | undefined {
  return (lease?.["spec"] as { holderIdentity?: string } | undefined)?.holderIdentity || undefined;
}
