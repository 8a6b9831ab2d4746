// A controller as others see it: what starts and stops, what can be looked at, and the way in for orders that do not
// come from the stream.
import type { DescMessage } from "@bufbuild/protobuf";
import type { BlockedDeletion, ControllerStatus, ObjectStatus } from "../gen/krane/v1/agent_pb.ts";
import type { ObjectFilter } from "./controller-status.ts";
import type { DesiredStore } from "./desired-store.ts";
import type { ApplyOf, DeleteOf } from "./engine-kind.ts";
import type { OutcomeRecord } from "./object-status.ts";

export interface OrderOutcome extends Pick<OutcomeRecord, "outcome" | "reason" | "fieldPath"> {
  /** The order cannot be understood, and changed nothing. */
  readonly isInvalid?: true;
}

/** A controller for whoever starts it and looks at it. */
export interface RunningController {
  /**
   * Resolves when the watches are open; rejects, with nothing left running, when they cannot be. A kind that
   * the cluster does not have is no reason: the status says so until it has.
   */
  start(signal?: AbortSignal): Promise<void>;
  /** May be called at any time and any number of times; when it resolves, nothing runs. */
  stop(): Promise<void>;
  status(): ControllerStatus;
  objects(filter?: ObjectFilter): ObjectStatus[];
  blockedDeletions(): BlockedDeletion[];
  /** False where no such deletion is blocked. */
  releaseDeletion(key: string): boolean;
}

/** The same for those who also give orders that do not come from the stream, and follow what comes of them. */
export interface KindController<State extends DescMessage = DescMessage, Seen = unknown, Spec = unknown>
  extends RunningController {
  /** `readinessId`: a token of the caller's, which is kept on the object. */
  apply(message: ApplyOf<State>, signal: AbortSignal, readinessId?: string): Promise<OrderOutcome>;
  delete(message: DeleteOf<State>, signal: AbortSignal): Promise<OrderOutcome>;
  /** What is wanted at this moment, by key. */
  readonly desired: Pick<DesiredStore<Spec>, "get">;
  /** What is there of all objects and of one, and which of them look different from before. */
  readonly seen: SeenObjects<Seen>;
}

/** What a controller sees in the cluster. It comes from the caches; looking costs the API server nothing. */
export interface SeenObjects<T> {
  keys(): Iterable<string>;
  /** Undefined where there is none of krane's. */
  get(key: string): T | undefined;
  /** The listener is told the key alone and looks for itself. Returns the way to stop listening. */
  subscribe(listener: KeyListener): () => void;
  /** Aborts when nothing more will be seen. */
  readonly ending: AbortSignal;
}

export type KeyListener = (key: string) => void;
