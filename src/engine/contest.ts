// Describes a program that keeps undoing what krane does: who, which field, since when. Who changed a field is read from
// managedFields, which holds whatever name the client sent; it is shown to people and decides nothing. Kubernetes does
// not record who deletes an object.
import { utcText } from "../concurrency/clock.ts";
import type { KubeObject, ObjectRef, ResourceKind } from "../kube/types.ts";
import { findTakenField, lastOtherManager } from "./field-owners.ts";

export interface Contest {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  /** Undefined while the object is missing. */
  readonly uid: string | undefined;
  /** "presence": it keeps being deleted, or created again. */
  readonly about: "repair" | "presence";
  readonly reason: string;
}

/** `found`: the object as it is now, at least its metadata. `sinceMs`: wall time. */
export interface ContestFacts {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  /** Kind, namespace and name. */
  readonly name: string;
  readonly sinceMs: number;
  readonly found: KubeObject | undefined;
}

/** Something keeps changing or deleting the object. */
export function contestOver(facts: ContestFacts, manifest: KubeObject): Contest {
  const { name, found } = facts;
  if (found === undefined) return contest(facts, "presence", `${client(undefined)} keeps deleting ${name}`);
  const { manager, field = "an unknown field" } = findTakenField(found, manifest);
  return contest(facts, "repair", `${client(manager)} keeps changing ${field} of ${name}`);
}

/** Something keeps creating an object that krane deletes. */
export function contestOverDeletion(facts: ContestFacts): Contest {
  const text = `${client(lastOtherManager(facts.found?.metadata))} keeps creating ${facts.name} again`;
  return contest(facts, "presence", text, ", although it is to be deleted");
}

function contest(
  { kind, ref, found, sinceMs }: ContestFacts,
  about: Contest["about"],
  text: string,
  rest = "",
): Contest {
  return {
    kind,
    ref,
    uid: found?.metadata?.uid,
    about,
    reason: `${text} since ${utcText(sinceMs)}${rest}`,
  };
}

// The name is the client's own choice, so it is quoted.
function client(manager: string | undefined): string {
  return manager === undefined ? "an unknown client" : `field manager ${JSON.stringify(manager)}`;
}

/**
 * The event that shows, in `kubectl describe`, that something keeps undoing what krane does. Its name is fixed per object
 * and uid, so repeating it does not fill the cluster.
 */
export function contestedEvent({ kind, ref, uid, reason }: Contest, wallMs: number) {
  const { name, namespace = "default" } = ref;
  const at = utcText(wallMs);
  return {
    metadata: { name: `${name}.contested-${(uid ?? "missing").slice(0, 8)}`, namespace },
    involvedObject: {
      apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`,
      kind: kind.kind,
      name,
      namespace,
      ...(uid !== undefined && { uid }),
    },
    type: "Warning",
    reason: "Contested",
    message: `${reason}. krane writes it less and less often while that goes on.`,
    source: { component: "krane" },
    reportingComponent: "krane",
    reportingInstance: "krane",
    firstTimestamp: at,
    lastTimestamp: at,
    count: 1,
  };
}
