// What oracles share: how to read the audit trail.
import type { KindName } from "../../src/kinds/kinds.ts";
import { labelKeys } from "../../src/model/labels.ts";
import { ownNamespace } from "../sim-agent.ts";
import type { AuditedChange, AuditRecord, LiveObject } from "../sim-cluster.ts";

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

/** The Kubernetes kind that each kind of desired state becomes. */
export const placesOfKinds: Readonly<Record<KindName, readonly [plural: string, group: string]>> = {
  deployment: ["replicasets", "apps"],
  sentinel: ["deployments", "apps"],
  policy: ["ciliumnetworkpolicies", "cilium.io"],
  route: ["services", ""],
};

/** The deployment that a Service leads to. */
export function targetOf(service: LiveObject | undefined): string {
  const { selector = {} } = (service?.["spec"] ?? {}) as { selector?: Readonly<Record<string, string>> };
  return selector[labelKeys.deploymentId] ?? "";
}
