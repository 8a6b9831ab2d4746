// Stores the newest desired state of each key and nothing else, so its size is the number of objects (K3).
//
// - The higher version wins, wherever it came from and in whatever order. An equal version with equal content changes
//   nothing.
// - A response counts only if the stream has not changed the key since the request; otherwise a stale response could
//   bring back what the stream has just deleted.
// - A response without a version (0) is compared by content, and the known version stays.
// - A Delete is remembered for an hour, and for as long as the object lives. A lagging server must not undo it, but a
//   control plane that was restored from a backup and never deleted the object must: that takes two independent signs, a
//   response with an older state, and a stream that sent such a state and then a version above the Delete. A stream is
//   in order, so in the history of that server the Delete does not exist.
// - All of these guesses are for control planes that do not name their incarnation. One that does lags if it sends lower
//   versions, however long, and nothing goes back. When it starts a new incarnation, every known version is void.
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../concurrency/clock.ts";
import { CacheIndex } from "../kube/object-cache.ts";
import { BucketSums, type DigestRow } from "../model/digest.ts";
import type { ContentHash, DesiredMessage, Want } from "./desired-message.ts";

export type Origin = "stream" | "resync" | "scheduler";

export interface DesiredEntry<Spec> {
  readonly key: string;
  readonly id: string | undefined;
  readonly version: bigint;
  readonly want: Want<Spec>;
  readonly origin: Origin;
  /**
   * The newest valid spec of this id; while `want` is invalid, the last one before it. It says what the control plane wants,
   * whether the cluster has taken it yet or not.
   */
  readonly lastValid: Spec | undefined;
  /** Grows with every change of the store, and tells a stale response from a current one. */
  readonly sequence: number;
}

export type StoreOutcome = "changed" | "unchanged" | "stale";

export interface Question {
  readonly key: string;
  readonly sequence: number;
  /** The fingerprint of the response that the entry came from. */
  readonly knownFingerprint: string | undefined;
  /** The known version; 0 if it is unknown, or its incarnation is. */
  readonly knownVersion: bigint;
}

const tombstoneMs = 3_600_000;

// A version lower than the known one comes from a lagging replica, or from a control plane that was restored from a
// backup. No replica lags for this many passes.
const lowerAnswersMax = 3;

/** A state of a deleted key that the open stream sent, older than its Delete. */
interface Doubt<Spec> {
  readonly message: DesiredMessage<Spec>;
  /** The stream has also sent a version above the Delete. */
  isProven: boolean;
}

interface Held<Spec> {
  entry: DesiredEntry<Spec>;
  /** When the control plane last sent it. */
  heardMs: number;
  lowerAnswers: number;
  /** For an order: what the control plane last sent for the key. */
  under: Want<Spec> | undefined;
  /** An earlier process took the order, so the incarnation that its version belongs to is unknown. */
  isRestored: boolean;
  /** The fingerprint of the last response, as long as that matches the entry. */
  fingerprint: string | undefined;
  /** Of the state that the control plane sent with the entry's version; also under an order. */
  content: ContentHash | undefined;
}

export class DesiredStore<Spec> {
  private readonly clock: Clock;
  private readonly held = new Map<string, Held<Spec>>();
  private readonly groups: CacheIndex<DesiredEntry<Spec>>;
  private readonly byName = new CacheIndex<DesiredEntry<Spec>>(({ key }) => key.slice(key.indexOf("/") + 1));
  /** Of the open stream, by key. */
  private readonly doubts = new Map<string, Doubt<Spec>>();
  /** The deleted keys whose Delete the open stream repeated after a response had contradicted it. */
  private readonly confirmed = new Set<string>();
  /** Entries whose version belongs to an older numbering. Workers may still hold them. */
  private readonly voided = new WeakSet<DesiredEntry<Spec>>();
  private readonly isNamed: () => boolean;
  private sequence = 0;
  private removals = 0;
  private sums = new BucketSums();

  /**
   * `groupOf` returns the group of an entry, such as its environment. `isNamed` tells whether the control plane names
   * its incarnation.
   */
  constructor(
    clock: Clock,
    groupOf: (entry: DesiredEntry<Spec>) => string | undefined = () => undefined,
    isNamed: () => boolean = () => false,
  ) {
    this.clock = clock;
    this.groups = new CacheIndex(groupOf);
    this.isNamed = isNamed;
  }

  get size(): number {
    return this.held.size;
  }

  /** Grows whenever an entry is added, replaced or removed. */
  get revision(): number {
    return this.sequence + this.removals;
  }

  get(key: string): DesiredEntry<Spec> | undefined {
    return this.held.get(key)?.entry;
  }

  /** Whether it names the object of this key and id; a Delete may name no id. */
  names(key: string, id: string | undefined): boolean {
    const entry = this.held.get(key)?.entry;
    if (entry === undefined || id === undefined) return false;
    return entry.id === id || (entry.id === undefined && entry.want.kind === "delete");
  }

  /** The digest of everything that the control plane has sent a content hash of; see model/digest.ts. */
  get digest(): BucketSums {
    return this.sums;
  }

  /** The id that the digest has for the key; undefined if it is not in it. */
  digestId(key: string): string | undefined {
    return this.held.get(key)?.content?.id;
  }

  /** What the digest says of the key; undefined if it is not in it. */
  digestRow(key: string): DigestRow | undefined {
    const held = this.held.get(key);
    return held && rowOf(held);
  }

  /** Computes the digest again, from everything. Returns whether it was right. */
  verifyDigest(): boolean {
    const before = this.sums;
    this.sums = new BucketSums();
    for (const held of this.held.values()) this.count(held);
    return isDeepStrictEqual(before, this.sums);
  }

  *entries(): IterableIterator<DesiredEntry<Spec>> {
    for (const { entry } of this.held.values()) yield entry;
  }

  ofGroup(name: string): readonly DesiredEntry<Spec>[] {
    return this.groups.get(name);
  }

  /** The entries of this name, in any namespace. */
  ofName(name: string): readonly DesiredEntry<Spec>[] {
    return this.byName.get(name);
  }

  /** A stream is opened; what the previous one sent says nothing about this one. */
  opened(): void {
    this.doubts.clear();
    for (const key of this.confirmed) {
      const held = this.held.get(key);
      if (held !== undefined) held.lowerAnswers = 0;
    }
    this.confirmed.clear();
  }

  /** The open stream has reached this version. Returns the keys whose Delete turned out to be of a lost future. */
  reached(version: bigint): readonly string[] {
    const revived: string[] = [];
    for (const [key, doubt] of this.doubts) {
      const known = this.held.get(key);
      if (known === undefined || version <= known.entry.version) continue;
      doubt.isProven = true;
      if (known.lowerAnswers > 0 && this.put(doubt.message, "stream") === "changed") revived.push(key);
    }
    return revived;
  }

  /** Takes a message from the stream. */
  receive(message: DesiredMessage<Spec>): StoreOutcome {
    const outcome = this.takeStreamed(message);
    if (outcome !== "stale") this.takeHash(message);
    return outcome;
  }

  private takeStreamed(message: DesiredMessage<Spec>): StoreOutcome {
    const known = this.held.get(message.key);
    if (known === undefined || message.version > known.entry.version)
      return this.takeNewer(known, message, "stream");
    if (known.entry.origin === "scheduler") known.under = message.want;
    if (message.version < known.entry.version) return this.doubt(known, message);
    known.heardMs = this.clock.nowMs();
    if (known.lowerAnswers > 0 && message.want.kind === "delete") this.confirmed.add(message.key);
    // A restored control plane uses the same version again, for different content.
    return known.entry.origin === "scheduler" ? "unchanged" : this.takeContent(known, message, "stream");
  }

  /** Takes an order, which has no version of its own: it holds until the control plane sends a newer one. */
  order(message: DesiredMessage<Spec>): StoreOutcome {
    const known = this.held.get(message.key);
    const under = known?.entry.origin === "scheduler" ? known.under : known?.entry.want;
    const outcome = this.put({ ...message, version: known?.entry.version ?? 0n }, "scheduler");
    const held = this.held.get(message.key);
    if (held !== undefined) {
      held.under = under;
      this.setContent(held, known?.content);
    }
    return outcome;
  }

  /** Takes an order that another process received. It carries the version that it replaced; a higher one replaces it. */
  restore(message: DesiredMessage<Spec>): StoreOutcome {
    const known = this.held.get(message.key);
    if (known !== undefined && known.entry.version > message.version) return "stale";
    const under = known?.entry.origin === "scheduler" ? known.under : known?.entry.want;
    const outcome = this.put(message, "scheduler");
    const held = this.held.get(message.key);
    if (held !== undefined) {
      held.isRestored = true;
      held.under = under;
    }
    return outcome;
  }

  /** How many responses in a row contradicted the Delete of the key, without a proof. */
  contradictions(key: string): number {
    const held = this.held.get(key);
    return held?.entry.want.kind === "delete" && !this.confirmed.has(key) ? held.lowerAnswers : 0;
  }

  /** Whether the open stream contradicts the Delete of the key. */
  isDoubted(key: string): boolean {
    return this.doubts.has(key);
  }

  ask(key: string): Question {
    const held = this.held.get(key);
    const knownVersion = held === undefined || held.isRestored ? 0n : held.entry.version;
    return { key, sequence: held?.entry.sequence ?? 0, knownFingerprint: held?.fingerprint, knownVersion };
  }

  /** Takes a response. One with the same fingerprint can be skipped for as long as ask() returns that fingerprint. */
  answer(question: Question, message: DesiredMessage<Spec>, fingerprint?: string): StoreOutcome {
    const outcome = this.takeAnswer(question, message);
    const held = this.held.get(question.key);
    const isAboutIt = message.key === question.key && outcome !== "stale";
    if (held !== undefined) held.fingerprint = isAboutIt ? fingerprint : undefined;
    if (outcome !== "stale") this.takeHash(message);
    return outcome;
  }

  /** The control plane restarted its numbering; whatever it sends next is newer. */
  forgetVersions(): void {
    for (const held of this.held.values()) {
      this.voided.add(held.entry);
      this.setContent(held, undefined);
      this.change(held, { version: 0n });
      held.fingerprint = undefined;
      held.lowerAnswers = 0;
    }
    this.doubts.clear();
    this.confirmed.clear();
  }

  /**
   * The control plane started a new incarnation: every version is void, and so is every Delete, because the new history
   * may not contain it. Orders stay. Returns the keys of the voided Deletes.
   */
  startOver(): readonly string[] {
    const deleted = [...this.held.values()].filter(
      ({ entry }) => entry.want.kind === "delete" && entry.origin !== "scheduler",
    );
    for (const { entry } of deleted) {
      this.voided.add(entry);
      this.remove(entry.key);
    }
    this.forgetVersions();
    return deleted.map(({ entry }) => entry.key);
  }

  /** Whether the version of the entry means something to the control plane. */
  isNumbered(entry: DesiredEntry<Spec>): boolean {
    return !this.voided.has(entry);
  }

  remove(key: string): void {
    const known = this.held.get(key);
    if (known !== undefined) {
      this.replaceInIndexes(known.entry, undefined);
      this.setContent(known, undefined);
    }
    this.dismiss(key);
    if (this.held.delete(key)) this.removals += 1;
  }

  /** Drops expired tombstones; returns their keys. */
  sweep(isAlive: (key: string) => boolean): readonly string[] {
    const beforeMs = this.clock.nowMs() - tombstoneMs;
    const swept: string[] = [];
    for (const [key, { entry, heardMs }] of this.held) {
      if (entry.want.kind !== "delete" || heardMs > beforeMs || isAlive(key)) continue;
      this.remove(key);
      swept.push(key);
    }
    return swept;
  }

  private takeAnswer(question: Question, message: DesiredMessage<Spec>): StoreOutcome {
    if (message.key !== question.key) return this.answerAboutAnother(message);
    const known = this.held.get(question.key);
    if (known === undefined) return question.sequence === 0 ? this.put(message, "resync") : "stale";
    if (known.entry.sequence !== question.sequence) return "stale";
    if (known.entry.want.kind === "delete") return this.answerAboutDeleted(known, message);
    if (message.version === 0n || message.version === known.entry.version) {
      known.lowerAnswers = 0;
      // For an order, the response carries what the order has replaced.
      return known.entry.origin === "scheduler" ? "unchanged" : this.takeContent(known, message, "resync");
    }
    if (message.version > known.entry.version) return this.takeNewer(known, message, "resync");
    if (this.isNamed() && !known.isRestored) return "stale";
    known.lowerAnswers += 1;
    return known.lowerAnswers >= lowerAnswersMax ? this.put(message, "resync") : "stale";
  }

  /** An order outlives a new numbering: only a state that the control plane did not send before the order is newer. */
  private takeNewer(
    known: Held<Spec> | undefined,
    message: DesiredMessage<Spec>,
    origin: Origin,
  ): StoreOutcome {
    const isRenumbered = known?.entry.origin === "scheduler" && known.entry.version === 0n;
    if (!isRenumbered || !isDeepStrictEqual(known.under, message.want)) return this.put(message, origin);
    this.change(known, { version: message.version });
    return "unchanged";
  }

  private doubt({ entry }: Held<Spec>, message: DesiredMessage<Spec>): StoreOutcome {
    if (this.isNamed()) return "stale";
    const isContradiction =
      entry.want.kind === "delete" && entry.origin !== "scheduler" && message.want.kind !== "delete";
    if (isContradiction && !this.confirmed.has(entry.key))
      this.doubts.set(entry.key, { message, isProven: false });
    return "stale";
  }

  private dismiss(key: string): void {
    this.doubts.delete(key);
    this.confirmed.delete(key);
  }

  private answerAboutDeleted(known: Held<Spec>, message: DesiredMessage<Spec>): StoreOutcome {
    const { entry } = known;
    if (entry.origin === "scheduler" || message.want.kind === "delete") return "stale";
    if (message.version > entry.version) return this.put(message, "resync");
    if (this.confirmed.has(entry.key) || this.isNamed()) return "stale";
    known.lowerAnswers += 1;
    const doubt = this.doubts.get(entry.key);
    const isLost = doubt !== undefined && (doubt.isProven || known.lowerAnswers >= lowerAnswersMax);
    return isLost ? this.put(doubt.message, "resync") : "stale";
  }

  /** The response to a request by id names another object. That state is stored under its own key. */
  private answerAboutAnother(message: DesiredMessage<Spec>): StoreOutcome {
    const known = this.held.get(message.key);
    if (known === undefined || message.version > known.entry.version) return this.put(message, "resync");
    return "stale";
  }

  private takeContent(known: Held<Spec>, message: DesiredMessage<Spec>, origin: Origin): StoreOutcome {
    if (isDeepStrictEqual(known.entry.want, message.want)) return "unchanged";
    return this.put({ ...message, version: known.entry.version }, origin);
  }

  /** The entry has what the control plane sent in this message, which may be under an order. */
  private takeHash({ key, version, content }: DesiredMessage<Spec>): void {
    const held = this.held.get(key);
    if (held !== undefined && content !== undefined && version > 0n && held.entry.version === version)
      this.setContent(held, content);
  }

  private setContent(held: Held<Spec>, content: ContentHash | undefined): void {
    const before = rowOf(held);
    if (before !== undefined) this.sums.subtract(before);
    held.content = content;
    this.count(held);
  }

  private count(held: Held<Spec>): void {
    const row = rowOf(held);
    if (row !== undefined) this.sums.add(row);
  }

  private change(held: Held<Spec>, to: Pick<DesiredEntry<Spec>, "version">): void {
    // The content that it had belongs to the old version.
    this.setContent(held, undefined);
    const before = held.entry;
    held.entry = { ...before, ...to };
    this.replaceInIndexes(before, held.entry);
  }

  private replaceInIndexes(
    before: DesiredEntry<Spec> | undefined,
    after: DesiredEntry<Spec> | undefined,
  ): void {
    for (const index of [this.groups, this.byName]) {
      if (before !== undefined) index.remove(before);
      if (after !== undefined) index.add(after);
    }
  }

  private put(message: DesiredMessage<Spec>, origin: Origin): StoreOutcome {
    const { key, version, want } = message;
    const known = this.held.get(key);
    const before = known?.entry;
    const id = message.id ?? before?.id;
    this.sequence += 1;
    const entry = {
      key,
      id,
      version,
      want,
      origin,
      lastValid: lastValidOf(want, id === before?.id ? before : undefined),
      sequence: this.sequence,
    };
    this.replaceInIndexes(before, entry);
    this.dismiss(key);
    // The caller of order() still reads the content of the one before.
    const row = known && rowOf(known);
    if (row !== undefined) this.sums.subtract(row);
    this.held.set(key, {
      entry,
      heardMs: this.clock.nowMs(),
      lowerAnswers: 0,
      under: undefined,
      isRestored: false,
      fingerprint: undefined,
      content: undefined,
    });
    return "changed";
  }
}

function rowOf<Spec>({ entry, content }: Held<Spec>): DigestRow | undefined {
  if (content === undefined) return undefined;
  return { id: content.id, version: entry.version, hash: Buffer.from(content.hash, "latin1") };
}

function lastValidOf<Spec>(want: Want<Spec>, before: DesiredEntry<Spec> | undefined): Spec | undefined {
  if (want.kind === "apply") return want.spec;
  return want.kind === "invalid" ? before?.lastValid : undefined;
}
