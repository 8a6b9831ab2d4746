// What the control plane has asked for, in order, kept by the world itself. Every order has a number that is also in the
// object (the tag of an image, the port of a policy), so that an oracle can tell which order a write comes from.
import type { KindName } from "../src/kinds/kinds.ts";
import { labelKeys } from "../src/model/labels.ts";
import type { LiveObject } from "./sim-cluster.ts";

export interface Order {
  readonly number: number;
  readonly kind: KindName;
  readonly id: string;
  readonly desired: "running" | "stopped";
  /** The last history of the control plane that contains it; each restore begins a new one. */
  epoch: number;
}

/** Policies carry the number of their order as a port. */
const portMin = 10_000;

export class Ledger {
  private readonly orders: Order[] = [];
  private readonly byId = new Map<string, Order[]>();
  /** When each object that the control plane once had was last seen to vanish from it. */
  private readonly absentSince = new Map<string, number>();
  private histories = 0;

  /** The number of the control plane's history; each restore begins a new one. */
  get epoch(): number {
    return this.histories;
  }

  /** The number of the next order. */
  get next(): number {
    return this.orders.length + 1;
  }

  portOf(number: number): number {
    return portMin + number;
  }

  add(kind: KindName, id: string, desired: Order["desired"]): void {
    const order = { number: this.next, kind, id, desired, epoch: this.epoch };
    this.orders.push(order);
    const key = `${kind} ${id}`;
    this.byId.set(key, [...(this.byId.get(key) ?? []), order]);
    this.absentSince.delete(key);
  }

  /** The control plane's rows are these from now on. `number` is the order that the spec of a row comes from. */
  restored(
    rows: readonly (Pick<Order, "kind" | "id" | "number"> & { readonly isStopped: boolean })[],
    nowMs: number,
  ): void {
    this.histories += 1;
    const present = new Set(rows.map(({ kind, id }) => `${kind} ${id}`));
    for (const { kind, id, number, isStopped } of rows) {
      const later = (this.byId.get(`${kind} ${id}`) ?? []).filter((each) => each.number > number);
      const order = isStopped ? later.find(({ desired }) => desired === "stopped") : this.orders[number - 1];
      if (order !== undefined) order.epoch = this.epoch;
    }
    for (const key of this.byId.keys()) {
      if (present.has(key)) this.absentSince.delete(key);
      else if (!this.absentSince.has(key)) this.absentSince.set(key, nowMs);
    }
  }

  vanished(kind: KindName, id: string, nowMs: number): void {
    this.absentSince.set(`${kind} ${id}`, nowMs);
  }

  /** Since when the control plane has had no row of it; undefined if it has one. */
  absentSinceMs(kind: KindName, id: string): number | undefined {
    return this.absentSince.get(`${kind} ${id}`);
  }

  order(number: number): Order | undefined {
    return this.orders[number - 1];
  }

  /** The number of the newest order that it should run; 0 without one. */
  newestToRun(kind: KindName, id: string): number {
    const orders = this.byId.get(`${kind} ${id}`) ?? [];
    return orders.findLast(({ desired }) => desired === "running")?.number ?? 0;
  }

  /** The first order to delete the object after that one, or in a newer history of the control plane. */
  stopAfter(kind: KindName, id: string, number: number): Order | undefined {
    const orders = this.byId.get(`${kind} ${id}`) ?? [];
    const epoch = this.order(number)?.epoch ?? 0;
    return orders.find((each) => each.desired === "stopped" && (each.number > number || each.epoch > epoch));
  }
}

const idLabels = {
  deployment: labelKeys.deploymentId,
  sentinel: labelKeys.sentinelId,
  policy: labelKeys.networkPolicyId,
  route: labelKeys.routeId,
} as const;

export interface OrderedObject {
  readonly kind: KindName;
  readonly id: string;
  /** Of the order that its spec comes from. */
  readonly number: number;
}

/** The order behind a workload or a policy; undefined for every other object. */
export function orderBehind(plural: string, object: LiveObject): OrderedObject | undefined {
  const labels = object.metadata.labels ?? {};
  const spec = JSON.stringify(object["spec"] ?? {});
  const tag = Number(/"image":"registry\.example\/[^":]*:(\d+)"/.exec(spec)?.[1] ?? Number.NaN);
  if (plural === "replicasets") return ordered("deployment", labels, tag);
  if (plural === "deployments") return ordered("sentinel", labels, tag);
  if (plural !== "ciliumnetworkpolicies") return undefined;
  const port = Number(/"port":"(\d+)"/.exec(spec)?.[1] ?? Number.NaN);
  return ordered("policy", labels, port - portMin);
}

function ordered(
  kind: KindName,
  labels: Readonly<Record<string, string>>,
  number: number,
): OrderedObject | undefined {
  const id = labels[idLabels[kind]];
  return id === undefined || Number.isNaN(number) ? undefined : { kind, id, number };
}
