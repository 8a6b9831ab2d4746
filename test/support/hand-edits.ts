// Every way to edit one field of an object by hand: each leaf that a manifest sends, once changed and once
// removed, written as `kubectl edit` writes it.
import type { KubeTransport } from "../../src/kube/transport.ts";
import type { KubeObject } from "../../src/kube/types.ts";

type Path = readonly (string | number)[];

export interface HandEdit {
  readonly name: string;
  /** The live object with the edit in it. */
  readonly object: KubeObject;
  /** Where the edit is. */
  readonly path: Path;
}

/** Identity is not a field to edit. */
const notEdited = /^(apiVersion|kind|metadata\.(name|namespace))$/;

/** The leaves of the manifest, found in the live object by the names of list items. */
export function* handEdits(manifest: KubeObject, live: KubeObject): Generator<HandEdit> {
  for (const path of leaves(manifest, live, [])) {
    const name = path.join(".");
    if (notEdited.test(name)) continue;
    yield { name: `${name} changed`, object: edited(live, path, other(valueAt(live, path))), path };
    yield { name: `${name} removed`, object: edited(live, path, undefined), path };
  }
}

export function valueAt(object: unknown, path: Path): unknown {
  let value: unknown = object;
  for (const step of path) value = (value as Record<string | number, unknown> | undefined)?.[step];
  return value;
}

/** Writes the object; the answer, or undefined where the server refuses it. */
export async function putObject(
  transport: KubeTransport,
  path: string,
  object: KubeObject,
  signal: AbortSignal,
): Promise<KubeObject | undefined> {
  const { status, body } = await transport.send(
    {
      method: "PUT",
      path,
      query: { fieldManager: "kubectl-edit" },
      contentType: "application/json",
      accept: "application/json",
      body: unconditional(object),
    },
    signal,
  );
  return status === 200 ? (body as KubeObject) : undefined;
}

/** Controllers write the status of built-in kinds all the time; custom ones and budgets take no update without a version. */
function unconditional(object: KubeObject): KubeObject {
  if (object.apiVersion?.includes(".") || object.kind === "PodDisruptionBudget") return object;
  const { resourceVersion: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata };
}

function* leaves(wanted: unknown, live: unknown, path: Path): Generator<Path> {
  if (Array.isArray(wanted) && Array.isArray(live)) {
    for (const [index, item] of wanted.entries()) {
      const at = named(item) ? live.findIndex((one) => named(one) && one.name === item.name) : index;
      yield* leaves(item, live[at], [...path, at]);
    }
  } else if (typeof wanted === "object" && wanted !== null && !Array.isArray(wanted)) {
    for (const [name, member] of Object.entries(wanted))
      yield* leaves(member, (live as Record<string, unknown> | undefined)?.[name], [...path, name]);
  } else if (live !== undefined) {
    yield path;
  }
}

function named(item: unknown): item is { readonly name: string } {
  return typeof item === "object" && item !== null && "name" in item;
}

function other(value: unknown): unknown {
  if (typeof value === "number") return value + 1;
  if (typeof value === "boolean") return !value;
  return typeof value === "string" && /^\d+(m|Mi|Gi)?$/.test(value) ? `1${value}` : `${value}x`;
}

function edited(live: KubeObject, path: Path, value: unknown): KubeObject {
  const copy = structuredClone(live);
  const parent = valueAt(copy, path.slice(0, -1)) as Record<string | number, unknown>;
  const last = path.at(-1) ?? "";
  if (value !== undefined) parent[last] = value;
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  return copy;
}
