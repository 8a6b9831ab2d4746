// What oracles share: how to read the audit trail.
import { ownNamespace } from "../sim-agent.ts";
import type { AuditedChange, AuditRecord } from "../sim-cluster.ts";

export function isAgent(actor: string): boolean {
  return actor.startsWith("agent ");
}

/** The changes that an agent made to objects other than its own lease, seal, records and events. */
export function managedChanges({ actor, changes }: AuditRecord): readonly AuditedChange[] {
  if (!isAgent(actor)) return [];
  return changes.filter(
    ({ plural, namespace }) => plural !== "events" && plural !== "namespaces" && namespace !== ownNamespace,
  );
}

export function nameOf({ plural, namespace, name }: AuditedChange): string {
  return `${plural} ${namespace}/${name}`;
}
