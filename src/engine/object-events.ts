// Writes Kubernetes Events about objects, in the background: a controller never waits for one, and a failed one changes
// nothing else. The log has a line for everything that an Event tells.
//
// - Per object, a few Events are written at once. After that one a minute is written, and says how many it stands for,
//   so a fight over an object cannot flood its namespace.
// - Events are only created, never updated, so the agent needs no right to read or change those of others.
import { createHash } from "node:crypto";
import { type Clock, utcText } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import { type WorkOutcome, WorkQueue } from "../concurrency/work-queue.ts";
import type { KubeApi } from "../kube/api.ts";
import { objectKey } from "../kube/object-cache.ts";
import { events } from "../kube/resources.ts";
import type { ObjectRef, ResourceKind } from "../kube/types.ts";
import { fieldManager } from "../model/labels.ts";
import type { Log } from "../telemetry/log.ts";
import { printable, scrub } from "../telemetry/scrub.ts";
import { classifyFailure, isRefusal } from "./classify.ts";

export interface EventSubject {
  readonly kind: ResourceKind;
  readonly ref: ObjectRef;
  readonly uid: string;
}

export type EventReason =
  | "Deleted"
  | "Repaired"
  | "Recreated"
  | "DeletionBlocked"
  | "Evicted"
  | "Held"
  | "Adopted";

export interface ObjectEvent {
  readonly subject: EventSubject;
  readonly type: "Normal" | "Warning";
  readonly reason: EventReason;
  readonly message: string;
}

export interface EventRecorderDeps {
  readonly api: Pick<KubeApi, "create">;
  readonly clock: Clock;
  readonly random: Random;
  /** Called when an event is dropped because too many wait; once until there is room again. */
  onFull(): void;
}

/** An event that waits, and how often it happened meanwhile. */
interface Waiting {
  event: ObjectEvent;
  count: number;
  readonly firstMs: number;
  lastMs: number;
  failures: number;
}

interface Allowance {
  left: number;
  filledMs: number;
}

const workers = 2;
// Beyond this, an event is dropped; the log has it.
const waitingMax = 10_000;
const burst = 5;
const refillMs = 60_000;
const allowancesMax = 10_000;
const failuresMax = 5;
// What the API server accepts for a note.
const messageCharsMax = 1_000;
const backoff = { initialMs: 1_000, maxMs: 60_000, jitter: "equal" } as const;

export class EventRecorder {
  private readonly deps: EventRecorderDeps;
  private readonly queue: WorkQueue;
  private readonly waiting = new Map<string, Waiting>();
  private readonly allowances = new Map<string, Allowance>();
  private isFull = false;

  constructor(deps: EventRecorderDeps) {
    this.deps = deps;
    // The handler does not throw.
    this.queue = new WorkQueue({ backoff }, { ...deps, onHandlerError: () => undefined });
  }

  /** How many events wait to be written. */
  get waitingCount(): number {
    return this.waiting.size;
  }

  record(event: ObjectEvent): void {
    const { kind, ref } = event.subject;
    const key = `${event.reason} ${kind.kind} ${objectKey(ref)}`;
    const nowMs = this.deps.clock.wallMs();
    const known = this.waiting.get(key);
    if (known !== undefined) {
      known.event = event;
      known.count += 1;
      known.lastMs = nowMs;
      return;
    }
    if (this.waiting.size >= waitingMax) {
      if (!this.isFull) this.deps.onFull();
      this.isFull = true;
      return;
    }
    this.isFull = false;
    this.waiting.set(key, { event, count: 1, firstMs: nowMs, lastMs: nowMs, failures: 0 });
    this.queue.addAfter(key, this.takeAllowance(event.subject));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.queue.run(workers, (key, work) => this.write(key, work), signal);
  }

  private async write(key: string, signal: AbortSignal): Promise<WorkOutcome> {
    const waiting = this.waiting.get(key);
    if (waiting === undefined) return { kind: "done" };
    // What happens from here on is another event.
    this.waiting.delete(key);
    try {
      await this.deps.api.create(events, eventObject(waiting), { fieldManager }, signal);
    } catch (error) {
      signal.throwIfAborted();
      return this.isWorthRetrying(error, key, waiting) ? { kind: "retry" } : { kind: "done" };
    }
    return { kind: "done" };
  }

  /** A refusal stays one: the namespace is gone or terminating, the right is missing, or the Event exists. */
  private isWorthRetrying(error: unknown, key: string, waiting: Waiting): boolean {
    waiting.failures += 1;
    if (classifyFailure(error) === undefined || isRefusal(error) || waiting.failures >= failuresMax)
      return false;
    const newer = this.waiting.get(key);
    if (newer === undefined) this.waiting.set(key, waiting);
    else this.waiting.set(key, { ...newer, count: newer.count + waiting.count, firstMs: waiting.firstMs });
    return true;
  }

  /** How long the next event about this object has to wait. By name, because a recreated object gets a new uid. */
  private takeAllowance({ kind, ref }: EventSubject): number {
    const name = `${kind.kind} ${objectKey(ref)}`;
    const nowMs = this.deps.clock.nowMs();
    const allowance = this.allowances.get(name) ?? { left: burst, filledMs: nowMs };
    this.allowances.delete(name);
    this.allowances.set(name, allowance);
    const refilled = Math.floor((nowMs - allowance.filledMs) / refillMs);
    if (refilled > 0) {
      allowance.left = Math.min(burst, allowance.left + refilled);
      allowance.filledMs += refilled * refillMs;
    }
    if (this.allowances.size > allowancesMax)
      for (const oldest of this.allowances.keys()) {
        this.allowances.delete(oldest);
        break;
      }
    allowance.left -= 1;
    return allowance.left >= 0 ? 0 : allowance.filledMs - allowance.left * refillMs - nowMs;
  }
}

/** The recorder of one controller. */
export function createEventRecorder(
  controller: string,
  { log, ...deps }: Omit<EventRecorderDeps, "onFull"> & { readonly log: Log },
): EventRecorder {
  const onFull = () => log.warn("Events are dropped: too many are waiting", { controller });
  return new EventRecorder({ ...deps, onFull });
}

function eventObject({ event, count, firstMs, lastMs }: Waiting) {
  const { kind, ref, uid } = event.subject;
  const { name, namespace = "default" } = ref;
  return {
    metadata: { name: `${name}.${eventId(event, lastMs)}`, namespace },
    involvedObject: {
      apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`,
      kind: kind.kind,
      name,
      namespace,
      uid,
    },
    type: event.type,
    reason: event.reason,
    message: printable(scrub(event.message, messageCharsMax)),
    source: { component: "krane" },
    reportingComponent: "krane",
    reportingInstance: "krane",
    firstTimestamp: utcText(firstMs),
    lastTimestamp: utcText(lastMs),
    count,
  };
}

/**
 * Two kinds of object may have the same name, so the name of an Event also depends on the uid. That of a blocked deletion
 * does not depend on the time: an agent that restarts does not repeat it.
 */
function eventId({ subject, reason }: ObjectEvent, lastMs: number): string {
  if (reason === "DeletionBlocked") return `deletion-blocked-${subject.uid.slice(0, 8)}`;
  return createHash("sha256")
    .update(`${subject.kind.kind} ${subject.uid} ${reason} ${lastMs}`)
    .digest("hex")
    .slice(0, 16);
}
