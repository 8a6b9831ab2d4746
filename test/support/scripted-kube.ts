// An API server of one kind, as small as a test can use: it keeps objects and their history, answers
// lists and watches at the transport's seam, and misbehaves exactly when told to.
import { onAbort } from "../../src/concurrency/abort-listener.ts";
import { KubeApiError } from "../../src/kube/errors.ts";
import type { KubeRequest, KubeResponse, KubeStream, KubeTransport } from "../../src/kube/transport.ts";
import type { KubeObject } from "../../src/kube/types.ts";

export interface ScriptedObject extends KubeObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
  readonly spec: { readonly value: number };
}

type EventType = "ADDED" | "MODIFIED" | "DELETED";

interface Change {
  readonly version: number;
  readonly type: EventType;
  readonly object: ScriptedObject;
}

/** What happens to one request instead of an answer. */
export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly reason?: string; readonly cause?: string }
  | { readonly kind: "network" }
  | { readonly kind: "silent" }
  | { readonly kind: "end-at-once" }
  | { readonly kind: "error-event"; readonly status: number };

export class ScriptedKube implements KubeTransport {
  readonly requests: KubeRequest[] = [];
  /** One for each coming request; undefined lets it pass. */
  readonly streamFaults: (Fault | undefined)[] = [];
  readonly sendFaults: (Fault | undefined)[] = [];
  supportsInitialEvents: "yes" | "refused" | "ignored" = "yes";
  pageSize = 500;
  private version = 100;
  private uids = 0;
  private compactedAt = 0;
  private readonly objects = new Map<string, ScriptedObject>();
  private readonly listed = new Map<string, readonly ScriptedObject[]>();
  private readonly history: Change[] = [];
  private readonly watches = new Set<Mailbox>();

  get watchCount(): number {
    return this.watches.size;
  }

  get resourceVersion(): string {
    return String(this.version);
  }

  /** name to uid, resourceVersion and value: what a cache should hold. */
  snapshot(): Record<string, string> {
    return Object.fromEntries(
      [...this.objects.values()]
        .map((object) => [`${object.metadata.namespace}/${object.metadata.name}`, fingerprint(object)])
        .sort(),
    );
  }

  set(name: string, value: number): void {
    const before = this.objects.get(name);
    const uid = before?.metadata.uid ?? `uid-${++this.uids}`;
    const object = this.build(name, uid, value);
    this.objects.set(name, object);
    this.emit(before === undefined ? "ADDED" : "MODIFIED", object);
  }

  delete(name: string): void {
    const before = this.objects.get(name);
    if (before === undefined) return;
    this.objects.delete(name);
    this.emit("DELETED", this.build(name, before.metadata.uid, before.spec.value));
  }

  bookmark(): void {
    for (const watch of this.watches) watch.push(this.bookmarkEvent(false));
  }

  /** Sends what every watch got before, again: duplicates and old events. */
  repeat(howMany: number): void {
    for (const change of this.history.slice(-howMany)) this.broadcast(change);
  }

  /** Two changes arrive in the wrong order. */
  swapped(first: () => void, second: () => void): void {
    const held: unknown[] = [];
    for (const watch of this.watches) watch.hold = held;
    first();
    const early = held.splice(0);
    for (const watch of this.watches) delete watch.hold;
    second();
    for (const watch of this.watches) for (const value of early) watch.push(value);
  }

  /** The change happens, and no watch will ever tell of it. */
  lose(change: () => void): void {
    const watches = [...this.watches];
    this.watches.clear();
    change();
    this.history.pop();
    for (const watch of watches) this.watches.add(watch);
  }

  pushRaw(value: unknown): void {
    for (const watch of this.watches) watch.push(value);
  }

  endWatches(): void {
    for (const watch of this.watches) watch.finish();
  }

  breakWatches(): void {
    for (const watch of this.watches) watch.fail(new KubeApiError("network", "connection reset"));
  }

  /** Events of open watches vanish until they are ended: a connection that nobody serves any more. */
  muteWatches(): void {
    for (const watch of this.watches) watch.muted = true;
  }

  /** History up to now is gone; older resourceVersions answer 410. */
  compact(): void {
    this.compactedAt = this.version;
  }

  async send(request: KubeRequest, signal: AbortSignal): Promise<KubeResponse> {
    signal.throwIfAborted();
    this.requests.push(request);
    const fault = this.sendFaults.shift();
    if (fault?.kind === "status") return refusal(fault);
    if (fault !== undefined) throw new KubeApiError("network", "connection reset");
    return { status: 200, body: this.listBody(request.query ?? {}) };
  }

  async stream(request: KubeRequest, signal: AbortSignal): Promise<KubeStream> {
    signal.throwIfAborted();
    this.requests.push(request);
    const query = request.query ?? {};
    const fault = this.streamFaults.shift();
    if (fault?.kind === "network") throw new KubeApiError("network", "connection reset");
    if (fault?.kind === "status") return refused(refusal(fault));
    const wantsInitial = query["sendInitialEvents"] === "true";
    if (wantsInitial && this.supportsInitialEvents === "refused") {
      return refused(refusal({ kind: "status", status: 422, reason: "Invalid" }));
    }
    const watch = new Mailbox(signal);
    if (fault?.kind === "end-at-once") watch.finish();
    else if (fault?.kind === "error-event") watch.push(errorEvent(fault.status));
    else if (fault?.kind === "silent") watch.muted = true;
    else if (wantsInitial || query["resourceVersion"] === undefined) this.sendState(watch, wantsInitial);
    else this.sendSince(watch, Number(query["resourceVersion"]));
    this.watches.add(watch);
    return { status: 200, values: this.drain(watch) };
  }

  async close(): Promise<void> {
    this.endWatches();
  }

  private async *drain(watch: Mailbox): AsyncGenerator<unknown, void, undefined> {
    try {
      yield* watch.values();
    } finally {
      this.watches.delete(watch);
    }
  }

  private sendState(watch: Mailbox, wantsInitial: boolean): void {
    for (const object of this.objects.values()) watch.push({ type: "ADDED", object });
    if (wantsInitial && this.supportsInitialEvents === "yes") watch.push(this.bookmarkEvent(true));
  }

  private sendSince(watch: Mailbox, since: number): void {
    if (since < this.compactedAt) watch.push(errorEvent(410));
    for (const { type, object, version } of this.history) if (version > since) watch.push({ type, object });
  }

  /** All pages of one list show one state, as those of a real server do. */
  private listBody(query: Readonly<Record<string, string>>): unknown {
    const [at = this.resourceVersion, from = "0"] = query["continue"]?.split("/") ?? [];
    const all = this.listed.get(at) ?? [...this.objects.values()];
    this.listed.set(at, all);
    const to = Number(from) + Math.min(Number(query["limit"] ?? all.length), this.pageSize);
    const metadata = { resourceVersion: at, ...(to < all.length && { continue: `${at}/${to}` }) };
    return { kind: "ThingList", apiVersion: "v1", metadata, items: all.slice(Number(from), to) };
  }

  private build(name: string, uid: string, value: number): ScriptedObject {
    this.version += 1;
    const metadata = { name, namespace: "default", uid, resourceVersion: this.resourceVersion };
    return { apiVersion: "v1", kind: "Thing", metadata, spec: { value } };
  }

  private emit(type: EventType, object: ScriptedObject): void {
    const change = { version: this.version, type, object };
    this.history.push(change);
    this.broadcast(change);
  }

  private broadcast({ type, object }: Change): void {
    for (const watch of this.watches) watch.push({ type, object });
  }

  private bookmarkEvent(initialEventsEnd: boolean): unknown {
    const annotations = initialEventsEnd ? { "k8s.io/initial-events-end": "true" } : {};
    return { type: "BOOKMARK", object: { metadata: { resourceVersion: this.resourceVersion, annotations } } };
  }
}

export function fingerprint(object: ScriptedObject): string {
  return `${object.metadata.uid}@${object.metadata.resourceVersion}=${object.spec.value}`;
}

function refusal(fault: Extract<Fault, { kind: "status" }>): KubeResponse {
  const causes = fault.cause === undefined ? {} : { details: { causes: [{ reason: fault.cause }] } };
  return {
    status: fault.status,
    body: { kind: "Status", apiVersion: "v1", code: fault.status, reason: fault.reason ?? "", ...causes },
  };
}

function refused(answer: KubeResponse): KubeStream {
  return { status: answer.status, refusal: answer, values: noEvents() };
}

async function* noEvents(): AsyncGenerator<never, void, undefined> {
  // A refused watch has none.
}

function errorEvent(code: number): unknown {
  const reason = code === 410 ? "Expired" : "InternalError";
  return { type: "ERROR", object: { kind: "Status", apiVersion: "v1", code, reason, message: "scripted" } };
}

/** What one watch has been sent and has not read yet. */
class Mailbox {
  hold?: unknown[];
  muted = false;
  private readonly waiting: unknown[] = [];
  private readonly signal: AbortSignal;
  private ending: { readonly error?: unknown } | undefined;
  private wake: () => void = () => undefined;

  constructor(signal: AbortSignal) {
    this.signal = signal;
  }

  push(value: unknown): void {
    if (this.ending !== undefined || this.muted) return;
    (this.hold ?? this.waiting).push(value);
    this.wake();
  }

  finish(): void {
    this.ending ??= {};
    this.wake();
  }

  fail(error: unknown): void {
    this.ending ??= { error };
    this.wake();
  }

  async *values(): AsyncGenerator<unknown, void, undefined> {
    const stopListening = onAbort(this.signal, () => this.fail(this.signal.reason));
    if (this.signal.aborted) this.fail(this.signal.reason);
    try {
      for (;;) {
        if (this.signal.aborted) throw this.signal.reason;
        while (this.waiting.length > 0) yield this.waiting.shift();
        if (this.ending?.error !== undefined) throw this.ending.error;
        if (this.ending !== undefined) return;
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
      }
    } finally {
      stopListening();
    }
  }
}
