// The seal: proves that this krane wrote an object (K4). Labels, annotations and names of field managers prove nothing,
// because anybody who may write to a namespace can write them.
//
// - A seal is an HMAC over the cluster, the region, the kind and name of the object, and the ids that it belongs to. It
//   stands in an annotation together with the region and the ids, which it proves. Copied to another object, cluster or
//   region, it is not valid.
// - The same input always gives the same text, so a sealed object that has not changed needs no write (K11).
// - While keys are rotated, seals of an older key are valid too, and are replaced.
// - An object that krane did not create but took over is sealed as adopted, for its uid only.
import { createHash, createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { ObjectMeta, ResourceKind } from "../kube/types.ts";
import { annotationKeys } from "./labels.ts";

/** What an object belongs to. Ids that it does not have are left out. */
export interface SealedIds {
  readonly workspaceId?: string | undefined;
  readonly projectId?: string | undefined;
  readonly environmentId?: string | undefined;
  /** The id at the control plane. */
  readonly id?: string | undefined;
  /** Of a workload that keeps the template of the original krane: the hash of krane's own at that time. */
  readonly keptTemplate?: string | undefined;
}

/** The ids of a workload's owners, and its own. */
export function sealedIdsOf(
  owners: { readonly workspaceId: string; readonly projectId: string; readonly environmentId: string },
  id: string,
): SealedIds {
  const { workspaceId, projectId, environmentId } = owners;
  return { workspaceId, projectId, environmentId, id };
}

export interface SealKey {
  /** Derived from the key; seals name it, so that a seal of another krane is told from a broken one. */
  readonly id: string;
  readonly key: KeyObject;
}

export interface SealOptions {
  /** The uid of the namespace kube-system. */
  readonly clusterId: string;
  readonly region: string;
  /** The last one seals, all of them verify. */
  readonly keys: readonly [SealKey, ...SealKey[]];
}

export type SealReading =
  | {
      readonly kind: "valid";
      readonly keyId: string;
      readonly isCurrent: boolean;
      readonly isAdopted: boolean;
      readonly ids: SealedIds;
    }
  | { readonly kind: "missing" }
  /** It was edited, or copied from another object or cluster. */
  | { readonly kind: "broken" }
  | { readonly kind: "other-key"; readonly keyId: string }
  | { readonly kind: "other-region"; readonly region: string };

export const sealKeyBytes = 32;

const format = "1";
const missing: SealReading = { kind: "missing" };
const broken: SealReading = { kind: "broken" };
// Ids and regions: they need no escaping, and each character is one byte.
const plain = /^[\w.-]*$/;

export function createSealKey(bytes: Uint8Array): SealKey {
  if (bytes.length !== sealKeyBytes)
    throw new RangeError(`a seal key must have ${sealKeyBytes} bytes, not ${bytes.length}`);
  const id = createHash("sha256").update("krane seal key id\n").update(bytes).digest("hex").slice(0, 8);
  return { id, key: createSecretKey(bytes) };
}

/** The object that a seal is for. */
export interface SealSubject {
  readonly kind: Pick<ResourceKind, "group" | "kind">;
  readonly namespace?: string | undefined;
  readonly name: string;
}

interface Claims extends SealedIds {
  readonly region: string;
  /** The uid of an adopted object; empty for one that krane created. */
  readonly adopted: string;
}

export class Seal {
  private readonly options: SealOptions;
  private readonly current: SealKey;
  private readonly verified = new VerifiedSeals();

  constructor(options: SealOptions) {
    this.options = options;
    this.current = options.keys.at(-1) ?? options.keys[0];
  }

  /** The uid of the namespace kube-system. */
  get clusterId(): string {
    return this.options.clusterId;
  }

  /** The id of the key that seals. */
  get keyId(): string {
    return this.current.id;
  }

  /** The ids of the keys that only verify. */
  get olderKeyIds(): readonly string[] {
    return this.options.keys.filter((key) => key !== this.current).map(({ id }) => id);
  }

  /** The text of the annotation. `adoptedUid`: the uid of an object that krane takes over. */
  write(subject: SealSubject, ids: SealedIds, adoptedUid = ""): string {
    const claims = { ...ids, region: this.options.region, adopted: adoptedUid };
    const text = this.textOf(subject, claims, this.current);
    this.remember(text, subject, claims, this.current);
    return text;
  }

  read(kind: SealSubject["kind"], metadata: ObjectMeta | undefined): SealReading {
    const text = metadata?.annotations?.[annotationKeys.seal];
    if (text === undefined) return missing;
    return this.verified.find(text, kind, metadata) ?? this.verify(text, kind, metadata);
  }

  /**
   * Shows another process with the same keys, cluster and region that this one has them. `purpose` keeps it apart from
   * seals, and from other proofs.
   */
  prove(purpose: string, parts: readonly string[], { key }: SealKey = this.current): string {
    const { clusterId, region } = this.options;
    const text = [`krane-proof-${purpose}`, clusterId, region, ...parts].map(measured).join("");
    return createHmac("sha256", key).update(text).digest("base64url");
  }

  /** Whether a process with one of these keys made the proof. */
  isProved(proof: string, purpose: string, parts: readonly string[]): boolean {
    return this.options.keys.some((key) => isEqual(proof, this.prove(purpose, parts, key)));
  }

  private verify(text: string, kind: SealSubject["kind"], metadata: ObjectMeta | undefined): SealReading {
    const parts = partsOf(text);
    if (parts === undefined || parts.format !== format) return broken;
    const key = this.options.keys.find(({ id }) => id === parts.keyId);
    if (key === undefined) return { kind: "other-key", keyId: parts.keyId };
    const { namespace, name = "", uid } = metadata ?? {};
    const { claims } = parts;
    if (!isEqual(text, this.textOf({ kind, namespace, name }, claims, key))) return broken;
    if (claims.adopted !== "" && claims.adopted !== uid) return broken;
    if (claims.region !== this.options.region) return { kind: "other-region", region: claims.region };
    return this.remember(text, { kind, namespace, name }, claims, key);
  }

  private remember(text: string, subject: SealSubject, claims: Claims, key: SealKey): SealReading {
    const { workspaceId, projectId, environmentId, id, keptTemplate, adopted } = claims;
    const ids = { workspaceId, projectId, environmentId, id, ...(keptTemplate && { keptTemplate }) };
    const isCurrent = key === this.current;
    const reading = { kind: "valid", keyId: key.id, isCurrent, isAdopted: adopted !== "", ids } as const;
    this.verified.add(text, { subject, adopted, reading });
    return reading;
  }

  private textOf(subject: SealSubject, claims: Claims, { id: keyId, key }: SealKey): string {
    const { region, workspaceId = "", projectId = "", environmentId = "", id = "", adopted } = claims;
    const { keptTemplate = "" } = claims;
    const { kind, namespace = "", name } = subject;
    // One string, without lists: every object that krane writes comes through here.
    const proof =
      measured(`krane-seal-${format}`) +
      measured(this.options.clusterId) +
      measured(region) +
      measured(kind.group) +
      measured(kind.kind) +
      measured(namespace) +
      measured(name) +
      measured(workspaceId) +
      measured(projectId) +
      measured(environmentId) +
      measured(id) +
      measured(adopted) +
      // Left out where there is none, so that the seals of earlier versions stay valid.
      (keptTemplate === "" ? "" : measured(keptTemplate));
    const mac = createHmac("sha256", key).update(proof).digest("base64url");
    const shown =
      word("region", region) +
      word("workspace", workspaceId) +
      word("project", projectId) +
      word("environment", environmentId) +
      word("id", id) +
      word("adopted", adopted) +
      word("kept", keptTemplate);
    return `v=${format}&key=${keyId}${shown}&mac=${mac}`;
  }
}

interface VerifiedSeal {
  readonly subject: SealSubject;
  readonly adopted: string;
  readonly reading: SealReading;
}

const generationMax = 1_024;

/**
 * The valid seals of the last objects that were written or read. An object comes several times in a row: as the response to a write,
 * and with every change of its status. Two generations keep the memory bounded (K10).
 */
class VerifiedSeals {
  private young = new Map<string, VerifiedSeal>();
  private old = new Map<string, VerifiedSeal>();

  find(text: string, kind: SealSubject["kind"], metadata: ObjectMeta | undefined): SealReading | undefined {
    const known = this.young.get(text) ?? this.old.get(text);
    if (known === undefined || (known.adopted !== "" && known.adopted !== metadata?.uid)) return undefined;
    const { subject, reading } = known;
    const isSameKind = subject.kind.kind === kind.kind && subject.kind.group === kind.group;
    const isSamePlace = subject.namespace === metadata?.namespace && subject.name === metadata?.name;
    return isSameKind && isSamePlace ? reading : undefined;
  }

  add(text: string, seal: VerifiedSeal): void {
    if (this.young.size >= generationMax) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(text, seal);
  }
}

/** A part of what is proved, with its length in bytes, so that no two lists of parts give the same text. */
function measured(part: string): string {
  return `${plain.test(part) ? part.length : Buffer.byteLength(part)}:${part}`;
}

function word(name: string, value: string): string {
  if (value === "") return "";
  return `&${name}=${plain.test(value) ? value : encodeURIComponent(value)}`;
}

function partsOf(text: string) {
  const words = new Map(text.split("&").map((word) => splitOnce(word)));
  try {
    const read = (word: string) => decodeURIComponent(words.get(word) ?? "");
    const claims: Claims = {
      region: read("region"),
      workspaceId: read("workspace") || undefined,
      projectId: read("project") || undefined,
      environmentId: read("environment") || undefined,
      id: read("id") || undefined,
      keptTemplate: read("kept") || undefined,
      adopted: read("adopted"),
    };
    return { format: read("v"), keyId: read("key"), claims };
  } catch {
    // Not escaped as krane does it.
    return undefined;
  }
}

function splitOnce(word: string): readonly [string, string] {
  const at = word.indexOf("=");
  return at === -1 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
