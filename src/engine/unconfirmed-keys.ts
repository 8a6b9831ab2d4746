// The desired state that a new leader has not confirmed yet. A standby whose stream is cut off keeps what it heard last,
// while the leader before it may have applied newer versions. So a new leader asks the control plane about a key before
// it acts on it for the first time (K3). Otherwise it would delete an object that was deleted once and ordered again.
// Without a response the key waits, as it does in an agent that starts without a control plane. It also waits if the
// control plane does not know it: the leader before may have deleted it, and its absence is up to the resync (K5). And it
// waits if the control plane answers with an older version: the leader before may have followed one that was restored.
import { isAbort } from "../concurrency/abort.ts";
import type { DesiredRequest, DesiredResponse } from "../control-plane/connection.ts";
import { ControlPlaneError } from "../control-plane/error.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { DeletionGuard } from "./deletion-guard.ts";
import type { ReadState } from "./desired-message.ts";
import type { DesiredStore, Question } from "./desired-store.ts";
import type { ObjectStatuses } from "./object-status.ts";

type Found<Spec> = Extract<DesiredResponse<ReadState<Spec>>, { kind: "found" }>;

export interface UnconfirmedKeysDeps<Spec> {
  readonly store: DesiredStore<Spec>;
  readonly definition: Pick<ControllerDefinition<Spec>, "managedByKey">;
  readonly guard: Pick<DeletionGuard, "isConfirmed" | "isSuspected">;
  readonly statuses: Pick<ObjectStatuses, "forget">;
  /** Asks the control plane for one object. */
  ask(question: DesiredRequest, signal: AbortSignal): Promise<DesiredResponse<ReadState<Spec>>>;
  enqueue(key: string): void;
  /** Reads the stream again from version 0. */
  replay(): void;
}

export class UnconfirmedKeys<Spec> {
  private readonly deps: UnconfirmedKeysDeps<Spec>;
  /** The state of each key when the term began. A state that came later is confirmed. */
  private readonly sequences = new Map<string, number>();

  constructor(deps: UnconfirmedKeysDeps<Spec>) {
    this.deps = deps;
  }

  /** A term begins. Orders of the scheduler are not asked for: their records are read at the take-over. */
  begin(): void {
    const { store, statuses } = this.deps;
    this.sequences.clear();
    for (const { key, sequence, origin } of store.entries()) {
      if (origin === "scheduler") continue;
      this.sequences.set(key, sequence);
      // What an earlier term of this process made of it may have been changed or deleted since (K14).
      statuses.forget(key);
    }
  }

  /** Whether the store's state of the key may still be an old one. Then at most its absence may be acted on. */
  has(key: string): boolean {
    return this.sequences.has(key);
  }

  /** Resolves with whether the key may be acted on; the store then has its newest state, or `has` is true. */
  async confirm(key: string, signal: AbortSignal): Promise<boolean> {
    const { store, definition, ask } = this.deps;
    const sequence = this.sequences.get(key);
    if (sequence === undefined) return true;
    const entry = store.get(key);
    // A Delete may name no id. Without an object there is nothing to delete.
    const id = entry?.id ?? definition.managedByKey(key)?.id;
    if (entry?.sequence === sequence && entry.origin !== "scheduler" && id !== undefined) {
      const question = store.ask(key);
      const { knownFingerprint, knownVersion } = question;
      try {
        const response = await ask({ id, knownFingerprint, knownVersion }, signal);
        // The key stays unconfirmed, also if its absence is acted on.
        if (response.kind === "not-found" && entry.want.kind !== "delete") return this.isAbsent(key);
        if (response.kind === "found" && !this.take(question, response)) return false;
      } catch (error) {
        if (!isAbort(error, signal) && !(error instanceof ControlPlaneError)) throw error;
        return false;
      }
    }
    this.sequences.delete(key);
    return true;
  }

  /** Whether the resync has found the key absent often enough for the reconcile to act on that, and not on the store. */
  private isAbsent(key: string): boolean {
    const { definition, guard } = this.deps;
    return definition.managedByKey(key) === undefined ? guard.isConfirmed(key) : guard.isSuspected(key);
  }

  /** Takes a response. Returns false if it contradicts the store, or cannot be read. */
  private take(question: Question, { state, fingerprint }: Found<Spec>): boolean {
    const { store, enqueue, replay } = this.deps;
    if (state.kind === "bare") return false;
    const { key } = question;
    const { message } = state;
    // The control plane lags, or was restored. Only the passes of the resync, a minute apart, tell which.
    const known = store.get(key);
    const isLower = message.version > 0n && message.version < (known?.version ?? 0n);
    if (message.key === key && known?.want.kind !== "delete" && isLower) return false;
    const before = store.contradictions(key);
    const outcome = store.answer(question, message, fingerprint);
    if (outcome === "changed" && message.key !== key) enqueue(message.key);
    const contradictions = store.contradictions(key);
    if (contradictions <= before) return true;
    // Only the stream can tell which is older, the Delete or the response. Once per Delete, as in the resync.
    if (contradictions === 1) replay();
    return false;
  }
}
