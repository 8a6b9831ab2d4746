// Describes a program that keeps undoing what krane does: who, which field, since when. Who changed a field is read from
// managedFields, which holds whatever name the client sent; it is shown to people and decides nothing. Kubernetes does
// not record who deletes an object.
import type { KubeObject, ManagedFieldsEntry, ObjectRef, ResourceKind } from "../kube/types.ts";
import { fieldManager } from "../model/labels.ts";
import { lastOtherManager } from "./field-owners.ts";

export interface Contest {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  /** Undefined while the object is missing. */
  readonly uid: string | undefined;
  /** "presence": it keeps being deleted, or created again. */
  readonly about: "repair" | "presence";
  readonly reason: string;
}

type Json = Readonly<Record<string, unknown>>;

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
  const { manager, field = "an unknown field" } = findChange(found, manifest);
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
    reason: `${text} since ${timestamp(sinceMs)}${rest}`,
  };
}

// The name is the client's own choice, so it is quoted.
function client(manager: string | undefined): string {
  return manager === undefined ? "an unknown client" : `field manager ${JSON.stringify(manager)}`;
}

/**
 * The field that another manager has taken from krane, and that manager. An apply owns every field that it sends, until
 * another client changes or removes it.
 */
function findChange(found: KubeObject, manifest: KubeObject): { manager?: string; field?: string } {
  const entries = found.metadata?.managedFields ?? [];
  const own = entries.find(isOwnApply)?.fieldsV1;
  const others = entries.filter((entry) => !isOwnApply(entry) && !isStatus(entry));
  const taken = others.flatMap((entry) => {
    const field = firstTaken(manifest, entry.fieldsV1, own);
    return field === undefined ? [] : [{ entry, field }];
  });
  const last = newest(taken.map(({ entry }) => entry));
  const change = taken.find(({ entry }) => entry === last);
  if (change !== undefined)
    return {
      field: change.field,
      ...(change.entry.manager !== undefined && { manager: change.entry.manager }),
    };
  const removed = firstMissing(manifest, own, []);
  return removed === undefined ? {} : { field: removed };
}

/** The first field of the manifest that the set has and krane's own set lacks. */
function firstTaken(wanted: unknown, set: unknown, own: unknown, path = ""): string | undefined {
  if (!isRecord(set)) return undefined;
  const steps = Object.keys(set).filter((step) => step !== ".");
  if (steps.length === 0) return own === undefined && path !== "" ? path : undefined;
  for (const step of steps) {
    const inner = innerOf(wanted, step);
    if (inner === undefined) continue;
    const ownInner = isRecord(own) ? own[step] : undefined;
    const field = firstTaken(inner, set[step], ownInner, path + pathStep(step, path));
    if (field !== undefined) return field;
  }
  return undefined;
}

/** The first member of the manifest that krane's set lacks: another client removed it. Lists are not searched. */
function firstMissing(wanted: unknown, own: unknown, path: readonly string[]): string | undefined {
  if (!isRecord(wanted) || !isRecord(own)) return undefined;
  if (Object.keys(own).length === 0) return undefined;
  for (const [name, value] of Object.entries(wanted)) {
    if (path.length === 0 && name !== "spec" && name !== "metadata") continue;
    const isIdentity =
      path.length === 1 && path[0] === "metadata" && (name === "name" || name === "namespace");
    if (isIdentity || value === undefined) continue;
    const inner = own[`f:${name}`];
    const here = [...path, name];
    if (inner === undefined) return here.join(".");
    const field = firstMissing(value, inner, here);
    if (field !== undefined) return field;
  }
  return undefined;
}

/** The part of a value that a step of a field set names: f:name, k:{"name":"web"} or v:"text". */
function innerOf(value: unknown, step: string): unknown {
  if (step.startsWith("f:")) return isRecord(value) ? value[step.slice(2)] : undefined;
  if (!Array.isArray(value)) return undefined;
  const named = parseStep(step);
  if (step.startsWith("v:")) return value.find((item) => item === named);
  if (!step.startsWith("k:") || !isRecord(named)) return undefined;
  const keys = Object.entries(named);
  return value.find((item) => isRecord(item) && keys.every(([key, part]) => item[key] === part));
}

function pathStep(step: string, path: string): string {
  if (step.startsWith("f:")) return `${path === "" ? "" : "."}${step.slice(2)}`;
  const named = parseStep(step);
  return `[${isRecord(named) ? Object.values(named).join(",") : JSON.stringify(named)}]`;
}

function parseStep(step: string): unknown {
  try {
    return JSON.parse(step.slice(2));
  } catch {
    return undefined;
  }
}

function newest(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry | undefined {
  let last: ManagedFieldsEntry | undefined;
  for (const entry of entries) if (last === undefined || (entry.time ?? "") > (last.time ?? "")) last = entry;
  return last;
}

function isOwnApply({ manager, operation, subresource }: ManagedFieldsEntry): boolean {
  return manager === fieldManager && operation === "Apply" && !subresource;
}

function isStatus({ subresource }: ManagedFieldsEntry): boolean {
  return subresource === "status";
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The event that shows, in `kubectl describe`, that something keeps undoing what krane does. Its name is fixed per object
 * and uid, so repeating it does not fill the cluster.
 */
export function contestedEvent({ kind, ref, uid, reason }: Contest, wallMs: number) {
  const { name, namespace = "default" } = ref;
  const at = timestamp(wallMs);
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

function timestamp(wallMs: number): string {
  // biome-ignore lint/style/noRestrictedGlobals: it formats the time that the clock gave, and reads none itself.
  return new Date(wallMs).toISOString().replace(/\.\d+Z$/, "Z");
}
