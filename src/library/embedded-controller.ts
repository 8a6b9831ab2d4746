// What the three controllers have in common for a program that embeds them.
import type { Outcome } from "../engine/object-status.ts";
import type { BlockedDeletion, ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";

/** What came of an order. */
export interface OrderOutcome {
  /**
   * All is well: "applied", "unchanged", "deleted". The order stays and is tried again: "parked" when
   * Kubernetes refused the object, "retrying" when it could not be reached, "conflict" when the name belongs
   * to somebody else, "blocked" when it may not be deleted.
   */
  readonly outcome: Outcome;
  /** Empty where all is well. */
  readonly reason: string;
  /** The field of the message that the reason is about, where it is about one. */
  readonly fieldPath: string | undefined;
  /** The order cannot be understood, and changed nothing. */
  readonly isInvalid?: true;
}

export interface ObjectSelection {
  readonly onlyTroubled?: boolean;
}

type Running = Pick<EmbeddedController, keyof EmbeddedController>;

/** Constructing one starts nothing. It can be started once. */
export abstract class EmbeddedController {
  readonly #running: Running;

  protected constructor(running: Running) {
    this.#running = running;
  }

  /**
   * Resolves when the watches are open; rejects, with nothing left running, when they cannot be. The signal
   * ends a start that is under way; what has started runs until stop().
   */
  start(signal?: AbortSignal): Promise<void> {
    return this.#running.start(signal);
  }

  /** May be called at any time and any number of times; when it resolves, nothing runs. */
  stop(): Promise<void> {
    return this.#running.stop();
  }

  status(): ControllerStatus {
    return this.#running.status();
  }

  /** Every object that is wanted or there, with what came of it and why. */
  objects(selection: ObjectSelection = {}): ObjectStatus[] {
    return this.#running.objects(selection);
  }

  /** Objects that the control plane does not know, and that are kept all the same. */
  blockedDeletions(): BlockedDeletion[] {
    return this.#running.blockedDeletions();
  }

  /** Lets go of one of them. False where no such deletion is blocked. */
  releaseDeletion(key: string): boolean {
    return this.#running.releaseDeletion(key);
  }
}
