// K4: agents write and delete only what agents created, and every delete carries the UID. Pods are the exception: krane may
// delete one that is less isolated than it was sent.
import type { AuditedChange, AuditRecord, LiveObject } from "../sim-cluster.ts";
import type { Oracle } from "../sim-region.ts";
import type { World } from "../world.ts";
import { managedChanges, nameOf } from "./audit-view.ts";

export class OwnershipOracle implements Oracle {
  private readonly world: World;

  constructor(world: World) {
    this.world = world;
  }

  onAudit(record: AuditRecord): void {
    for (const change of managedChanges(record)) {
      const { plural, before, after } = change;
      if (before === undefined) continue;
      if (plural === "pods") this.judgePod(record, change, before);
      else if (!this.world.isOfAgents(before))
        this.world.violate("K4", `${record.actor} changed ${nameOf(change)}, which no agent created`);
      if (after === undefined && uidIn(record) !== before.metadata.uid)
        this.world.violate("K4", `${record.actor} deleted ${nameOf(change)} without its uid`);
    }
  }

  private judgePod(record: AuditRecord, change: AuditedChange, pod: LiveObject): void {
    const spec = pod["spec"] as {
      runtimeClassName?: string;
      hostNetwork?: boolean;
      containers?: readonly unknown[];
    };
    const isWeak =
      spec.runtimeClassName !== "gvisor" || spec.hostNetwork === true || spec.containers?.length !== 1;
    if (!isWeak)
      this.world.violate(
        "K4",
        `${record.actor} deleted ${nameOf(change)}, which is as isolated as it was sent`,
      );
  }
}

function uidIn({ request: { body } }: AuditRecord): string | undefined {
  return (body as { preconditions?: { uid?: string } } | undefined)?.preconditions?.uid;
}
