// The reports on the objects of one region. An address belongs to one instance at a time:
// Kubernetes gives the IP of a deleted pod to the next one, often before the deletion was
// reported, and traffic for one customer's deployment must not be sent to another's pod.
import type { KindName, ReportOf } from "../kinds/kinds.ts";
import type { Instance, ObjectReport } from "../kinds/report.ts";

export class KeptReports {
  private readonly byObject = new Map<string, ObjectReport>();
  private readonly objectByAddress = new Map<string, string>();

  get<K extends KindName>(kind: K, id: string): ReportOf<K> | undefined {
    // A report stored under a kind is a report of that kind.
    return this.byObject.get(keyOf(kind, id)) as ReportOf<K> | undefined;
  }

  /** Returns what is stored of it. */
  replace<K extends KindName>(kind: K, id: string, report: ReportOf<K>): ObjectReport {
    this.delete(kind, id);
    const key = keyOf(kind, id);
    const kept = withoutRepetition<ObjectReport>(report);
    for (const { address } of kept.instances ?? []) {
      // Pods that never got an IP have no address to conflict over.
      if (address === "") continue;
      this.releaseAddress(address);
      this.objectByAddress.set(address, key);
    }
    this.byObject.set(key, kept);
    return kept;
  }

  delete(kind: KindName, id: string): void {
    const key = keyOf(kind, id);
    for (const { address } of this.byObject.get(key)?.instances ?? []) this.objectByAddress.delete(address);
    this.byObject.delete(key);
  }

  private releaseAddress(address: string): void {
    const holder = this.objectByAddress.get(address);
    const report = holder === undefined ? undefined : this.byObject.get(holder);
    if (holder === undefined || report?.instances === undefined) return;
    const instances = report.instances.filter((instance) => instance.address !== address);
    this.byObject.set(holder, { ...report, instances });
  }
}

function keyOf(kind: KindName, id: string): string {
  return `${kind} ${id}`;
}

/** Keeps one instance per pod and per address; of two, the later one is newer. */
export function withoutRepetition<R extends ObjectReport>(report: R): R {
  return report.instances === undefined ? report : { ...report, instances: distinct(report.instances) };
}

function distinct(instances: readonly Instance[]): Instance[] {
  const byPod = new Map<string, Instance>();
  const podByAddress = new Map<string, string>();
  for (const instance of instances) {
    const { k8sName, address } = instance;
    const holder = address === "" ? undefined : podByAddress.get(address);
    if (holder !== undefined) byPod.delete(holder);
    byPod.set(k8sName, instance);
    if (address !== "") podByAddress.set(address, k8sName);
  }
  return [...byPod.values()];
}
