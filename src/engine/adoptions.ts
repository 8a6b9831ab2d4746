// The objects of another krane that a person allowed this one to take over: after a lost key, a renamed region, or a
// restore into another cluster. A permission is for one uid, is used once, and ends after an hour.
import type { Clock } from "../concurrency/clock.ts";
import type { Ownership } from "../model/ownership.ts";

const lifetimeMs = 3_600_000;
const permissionsMax = 50_000;

/** How such an object is judged: like one without a seal, so that only its id and desired state decide. */
export const asUnsealed: Ownership = { kind: "unsealed", reason: "its adoption is allowed" };

/** Whether it carries a seal that is not this krane's. */
export function isSealedStranger(ownership: Ownership): boolean {
  return ownership.kind === "foreign" && ownership.seal !== undefined;
}

export class Adoptions {
  private readonly clock: Clock;
  private readonly permissions = new Map<string, { readonly uid: string; readonly untilMs: number }>();

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** `name`: kind, namespace and name of the object. Returns false if it was allowed before. */
  allow(name: string, uid: string): boolean {
    if (this.isAllowed(name, uid)) return false;
    if (this.permissions.size >= permissionsMax) this.permissions.clear();
    this.permissions.set(name, { uid, untilMs: this.clock.nowMs() + lifetimeMs });
    return true;
  }

  isAllowed(name: string, uid: string): boolean {
    const permission = this.permissions.get(name);
    if (permission === undefined) return false;
    if (permission.uid === uid && permission.untilMs > this.clock.nowMs()) return true;
    this.permissions.delete(name);
    return false;
  }

  used(name: string): void {
    this.permissions.delete(name);
  }
}
