// Finds where a live object differs from what krane wants: fields that krane applied and others changed or removed, and
// everything else in its spec that is not a default or an allocation of the server. It does not depend on krane's kinds.
//
// What krane applied is read from its entry in managedFields; the caller has compared that part with the manifest
// already, by its hash, so an entry that somebody forged shows. Everything else there is a claim, because anybody can
// write under any name, also as `krane`, and remove entries. It is used to report who wrote a field, and to recognise a
// default of a newer server: a field whose name this krane does not know and that no manager wrote.
import { isDeepStrictEqual } from "node:util";
import type { PatchOperation } from "../kube/api.ts";
import { defaultOf, eachItem, isServerDefault, type ServerDefaults } from "../kube/server-defaults.ts";
import { knownFieldNames, mapFieldNames } from "../kube/spec-field-names.ts";
import type { KubeObject } from "../kube/types.ts";
import { parseMebibytes, parseMillicores } from "../model/quantities.ts";
import {
  type FieldStep,
  isOwnApply,
  isRecord,
  itemStep,
  type Json,
  namesParts,
  ownApply,
  ownerOfField,
  parseStep,
} from "./field-owners.ts";

type Expected = ServerDefaults[string] | undefined;

export interface DriftedField {
  /** For people: `spec.template.spec.containers[app].securityContext`. */
  readonly path: string;
  /** A JSON pointer to it. */
  readonly pointer: string;
  /** The whole live value, or undefined if the field is missing. A field below it is not listed on its own. */
  readonly value: unknown;
  /** What krane applied, or else the server's default; undefined if the field should not be there. */
  readonly wanted: unknown;
  /** Who claims to have written it last; absent if nobody does. */
  readonly owner?: FieldOwner;
  /** Taken for a default of a newer server, so it is left alone. */
  readonly isUnknownDefault: boolean;
}

export interface FieldOwner {
  readonly manager: string;
  /** RFC 3339. */
  readonly time: string | undefined;
}

/** Where the search is: a live value, with what is known about it. */
interface Place {
  readonly steps: readonly FieldStep[];
  /** krane's record of what it applied here; undefined if nothing. */
  readonly applied: unknown;
  /** What the manifest has here. */
  readonly wanted: unknown;
  readonly defaults: Expected;
}

/**
 * Without a manifest, finds only what others added. With the manifest that krane applied, also what they changed and
 * removed.
 */
export function findDriftedFields(
  live: KubeObject,
  defaults: ServerDefaults,
  manifest?: KubeObject,
): readonly DriftedField[] {
  const applied = ownApply(live)?.fieldsV1;
  if (!isRecord(applied)) return [];
  const search = new DriftSearch(live, manifest !== undefined);
  // The items of a list response lack both.
  const { apiVersion: _, kind: __, ...wanted } = (manifest ?? {}) as KubeObject & Json;
  search.inObject(live as Json, { steps: [], applied, wanted: manifest && wanted, defaults });
  return search.found;
}

class DriftSearch {
  readonly found: DriftedField[] = [];
  private readonly live: KubeObject;
  private readonly knowsWanted: boolean;

  constructor(live: KubeObject, knowsWanted: boolean) {
    this.live = live;
    this.knowsWanted = knowsWanted;
  }

  inObject(value: Json, { steps, applied, wanted, defaults }: Place): void {
    for (const [name, member] of Object.entries(value))
      this.visit(member, {
        steps: [...steps, name],
        applied: memberOf(applied, `f:${name}`),
        wanted: memberOf(wanted, name),
        defaults: defaultOf(defaults, name),
      });
    if (!isRecord(wanted)) return;
    for (const [name, member] of Object.entries(wanted))
      if (member !== undefined && (value[name] === undefined || value[name] === null))
        this.add([...steps, name], undefined, member);
  }

  private inList(items: readonly unknown[], { steps, applied, wanted, defaults }: Place): void {
    const recorded = items.map((item) => itemStep(applied, item));
    const matches = recorded.map((step) => step && wantedItem(wanted, parseStep(step)));
    for (const [index, item] of items.entries()) {
      const step = recorded[index];
      // An item that krane has no record of may be one that it lost, perhaps with another key.
      const lost = step === undefined ? lostItem(wanted, item) : undefined;
      if (lost !== undefined && !matches.includes(lost)) matches[index] = lost;
      this.visit(item, {
        steps: [...steps, { index, item }],
        applied: step === undefined ? undefined : memberOf(applied, step),
        wanted: matches[index],
        defaults: defaultOf(defaults, eachItem),
      });
    }
    if (!Array.isArray(wanted)) return;
    for (const item of wanted)
      if (!matches.includes(item)) this.add([...steps, { index: -1, item }], undefined, item);
  }

  private visit(value: unknown, place: Place): void {
    const { steps, applied, wanted, defaults } = place;
    if (value === null || value === undefined) return;
    // Anybody can apply as krane, so a record of krane's proves nothing if the manifest has no such field.
    if (wanted === undefined && (applied === undefined || this.knowsWanted)) {
      this.judge(value, defaults, steps);
    } else if (typeof value !== "object" || (wanted !== undefined && typeof wanted !== "object")) {
      if (wanted !== undefined && !isSame(value, wanted, steps)) this.add(steps, value, wanted);
    } else if (isRecord(applied) && !namesParts(applied)) {
      this.inWhole(value, place);
    } else if (Array.isArray(value)) {
      this.inList(value, place);
    } else {
      this.inObject(value as Json, place);
    }
  }

  /** krane applied this value as a whole, so only the manifest tells what it put there. */
  private inWhole(value: object, { steps, wanted }: Place): void {
    if (wanted === undefined) return;
    if (!Array.isArray(value))
      this.inObject(value as Json, { steps, applied: undefined, wanted, defaults: undefined });
    else if (!isDeepStrictEqual(value, wanted)) this.add(steps, value, wanted);
  }

  /** A value that krane did not apply. */
  private judge(value: unknown, expected: Expected, steps: readonly FieldStep[]): void {
    if (isServerDefault(value, expected)) return;
    const unknown = this.unknownDefaults(value, expected, steps);
    if (unknown === undefined) this.add(steps, value, typeof expected === "object" ? undefined : expected);
    else for (const [place, member] of unknown) this.add(place, member, undefined, true);
  }

  /** The fields because of which it is not the default, if all of them may be defaults of a newer server. */
  private unknownDefaults(
    value: unknown,
    expected: Expected,
    steps: readonly FieldStep[],
  ): readonly (readonly [readonly FieldStep[], unknown])[] | undefined {
    if (!isKnown(steps)) return this.ownerOf(steps) === undefined ? [[steps, value]] : undefined;
    if (!isRecord(value) || typeof expected !== "object") return undefined;
    const fields: (readonly [readonly FieldStep[], unknown])[] = [];
    for (const [name, member] of Object.entries(value)) {
      if (isServerDefault(member, expected[name])) continue;
      const below = this.unknownDefaults(member, expected[name], [...steps, name]);
      if (below === undefined) return undefined;
      fields.push(...below);
    }
    return fields;
  }

  private add(steps: readonly FieldStep[], value: unknown, wanted: unknown, isUnknownDefault = false): void {
    const owner = this.ownerOf(steps);
    this.found.push({
      path: describePath(steps),
      pointer: pointerTo(steps),
      value,
      wanted,
      isUnknownDefault,
      ...(owner !== undefined && { owner }),
    });
  }

  private ownerOf(steps: readonly FieldStep[]): FieldOwner | undefined {
    const entry = ownerOfField(this.live, steps);
    return entry && { manager: entry.manager ?? "", time: entry.time };
  }
}

const describedMax = 10;

/** Names the fields with their writers, never with their values, which may be secret (K7). */
export function describeDrift(fields: readonly DriftedField[]): string {
  const named = fields.slice(0, describedMax).map(({ path, owner }) => {
    if (owner === undefined) return `${path} (no manager)`;
    return `${path} (${[owner.manager, owner.time].filter(Boolean).join(", ")})`;
  });
  const more = fields.length - named.length;
  return more > 0 ? `${named.join(", ")} and ${more} more` : named.join(", ");
}

/** The patch that undoes the drift. */
export function repairOf(fields: readonly DriftedField[]): readonly PatchOperation[] {
  // Found in order, so the later items of a list go first: their indexes do not change with those before them.
  return fields.toReversed().map(({ pointer: path, value, wanted }): PatchOperation => {
    if (wanted === undefined) return { op: "remove", path };
    return { op: value === undefined ? "add" : "replace", path, value: wanted };
  });
}

/**
 * The patch that removes what managers other than krane's apply claim to own in the spec. Their values stay until krane
 * applies without them: an apply keeps a field of its own that another manager owns too, even if it then makes the
 * object invalid.
 */
export function disownOthers(live: KubeObject): readonly PatchOperation[] {
  const entries = live.metadata?.managedFields ?? [];
  return entries
    .flatMap((entry, index): PatchOperation[] => {
      const isSpec = isRecord(entry.fieldsV1) && entry.fieldsV1["f:spec"] !== undefined;
      if (isOwnApply(entry) || entry.subresource || !isSpec) return [];
      return [{ op: "remove", path: `/metadata/managedFields/${index}` }];
    })
    .toReversed();
}

/** The manifest's item with these keys, or equal to this value. It may leave out a key that has a default. */
function wantedItem(wanted: unknown, keys: unknown): unknown {
  if (!Array.isArray(wanted) || keys === undefined) return undefined;
  if (!isRecord(keys)) return wanted.find((item) => item === keys);
  return wanted.find(
    (item) =>
      isRecord(item) &&
      Object.entries(keys).every(([name, key]) => item[name] === undefined || item[name] === key),
  );
}

function lostItem(wanted: unknown, item: unknown): unknown {
  const name = memberOf(item, "name");
  if (name !== undefined) return wantedItem(wanted, { name });
  return Array.isArray(wanted) ? wanted.find((one) => isDeepStrictEqual(one, item)) : undefined;
}

/** Whether the server stored what krane wants; it writes some amounts differently. */
function isSame(value: unknown, wanted: unknown, steps: readonly FieldStep[]): boolean {
  if (value === wanted) return true;
  const [above, last] = [steps.at(-2), steps.at(-1)];
  const isAmount = above === "limits" || above === "requests";
  if (!isAmount || typeof last !== "string" || typeof value !== "string" || typeof wanted !== "string")
    return false;
  return amount(last, value) === amount(last, wanted);
}

// As krane writes them, and as the server returns most of them.
const plainCpu = /^[1-9]\d{0,8}m$/;
const plainMemory = /^[1-9]\d{0,8}Mi$/;

// The server writes 1024Mi as 1Gi. Rounding loses nothing here: changing an amount also removes the field from
// krane's record.
export function amount(resource: string, text: string): string {
  if (resource === "cpu") return plainCpu.test(text) ? text : `${parseMillicores(text)}m`;
  return plainMemory.test(text) ? text : `${parseMebibytes(text)}Mi`;
}

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

/** Whether the name of the last field is one that this krane knows. Items and the keys of maps always are. */
function isKnown(steps: readonly FieldStep[]): boolean {
  const [above, last] = [steps.at(-2), steps.at(-1)];
  if (typeof last !== "string" || knownFieldNames.has(last)) return true;
  return typeof above === "string" && mapFieldNames.has(above);
}

function pointerTo(steps: readonly FieldStep[]): string {
  return steps
    .map((step) =>
      typeof step === "string"
        ? `/${step.replaceAll("~", "~0").replaceAll("/", "~1")}`
        : `/${step.index < 0 ? "-" : step.index}`,
    )
    .join("");
}

const plainName = /^\w+$/;

function describePath(steps: readonly FieldStep[]): string {
  let text = "";
  for (const step of steps) {
    if (typeof step !== "string") text += `[${itemName(step.item) ?? step.index}]`;
    else if (!plainName.test(step)) text += `[${step}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}

function itemName(item: unknown): string | undefined {
  if (typeof item === "string") return item;
  if (!isRecord(item)) return undefined;
  const name = item["name"] ?? item["mountPath"] ?? item["containerPort"] ?? item["port"] ?? item["ip"];
  return typeof name === "string" || typeof name === "number" ? String(name) : undefined;
}
