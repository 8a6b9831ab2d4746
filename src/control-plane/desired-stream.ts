// Reads the stream of desired state and reconnects it from the cursor until the signal aborts. It delivers states in
// order and does not interpret them.
//
// - The first connection is opened at once, every later one after a delay. Only a replay, and the first `out_of_range`
//   after a good connection, reconnect without one.
// - The next state is read when onState is done with the last one, so a slow reader slows the server down instead of
//   filling memory.
// - An error of the stream is shown in the status and waited out. An error of onState is a bug: it ends run() after the
//   connection is closed, and the supervisor restarts it.
// - A stream may be silent for ever, because pings prove its connection. The periodic replay reopens it, so it does not
//   stay with one old server for weeks. A message that has begun must become whole within a minute; see
//   message-progress.ts.
// - An unreadable message (damaged, or never whole) ends every connection at the same place. It is not skipped: without
//   reading it, its version is unknown, and a guess could skip other versions permanently (K2). It is logged as an error
//   instead. The resync still corrects known objects, because it asks for each one; only new objects behind that message
//   have to wait. A message above the size limit ends one connection at most; see large-messages.ts.
// - The stream of a kind that the control plane is too old for is opened again about once a minute, silently.
import { linkSignals } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import { notify } from "../concurrency/notify.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type ControlPlaneCode, ControlPlaneError } from "./error.ts";
import {
  achievedSomething,
  createReconnectDelay,
  type EndedConnection,
  provenByPingsMs,
  type ReconnectDelay,
} from "./reconnect-delay.ts";

// A connection to a server that is down usually fails sooner than this. Surviving it proves nothing, but is reason enough
// to retry a failed report.
const promisingMs = 1_000;

// One failure may be a matter of the connection; this many at the same version are not.
const stuckAfter = 3;
/** Codes of a server or proxy that is unavailable or refuses the agent: they are not caused by a message. */
const unrelatedCodes: ReadonlySet<ControlPlaneCode> = new Set<ControlPlaneCode>([
  "unavailable",
  "deadline_exceeded",
  "canceled",
  "unauthenticated",
  "permission_denied",
  "unimplemented",
  "failed_precondition",
  "out_of_range",
]);

// States that have arrived are read without waiting. After this many, the loop pauses, or a flood would delay every
// other controller, timer and health probe (K6). Almost a thousand states per second still come in, several times what
// a cluster takes.
const statesPerTurn = 4;
const turnMs = 4;

const warnEveryMs = 60_000;

/** An upgraded control plane usually ends the connection, but a proxy may keep it. */
const unsupportedMs = { min: 30_000, max: 60_000 };

export interface DesiredSource<S> {
  readonly controller: string;
  /** Of a kind that older control planes do not have. Default false. */
  readonly isAddition?: boolean | undefined;
  open(versionLastSeen: bigint, signal: AbortSignal): AsyncIterable<S>;
  /** Called for each connection (K2). */
  cursor(): bigint;
  /** Sets the cursor to 0: for a replay, and when the server answers that the cursor is ahead of it. */
  resetCursor(): void;
  onState(state: S): void | Promise<void>;
  /**
   * Called for every sign of life of the server: a connection that has lasted a second, or a state. Failed reports are
   * worth a retry then.
   */
  onSign?(): void;
  /** Called for every change. Its errors are ignored. */
  onStatus?(status: StreamStatus): void;
}

export interface StreamStatus {
  /** "unsupported": the control plane is too old for this kind. */
  readonly state: "idle" | "connecting" | "open" | "waiting" | "unsupported" | "stopped";
  /** Wall time at which the state was entered. */
  readonly sinceMs: number;
  /** How often the stream was reopened after it had ended. */
  readonly reconnects: number;
  /** Why the last connection failed; cleared by the first message of a later one. */
  readonly lastError?: {
    readonly code: ControlPlaneCode;
    readonly message: string;
    readonly atMs: number;
  };
}

export interface DesiredStreamDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics?: Pick<Metrics, "controlPlaneReconnects" | "controlPlaneStuck">;
  readonly log?: Log;
}

export interface DesiredStream {
  /** Resolves when the signal has aborted and the connection is closed. Calls must not overlap. */
  run(signal: AbortSignal): Promise<void>;
  /** Resets the cursor and reopens the stream: after this long (default at once) if it is open, else when its delay is over. */
  reconnectFromZero(afterMs?: number): void;
  /** Does so repeatedly, until the signal aborts. The interval is up to a fifth shorter, at random. */
  replayEvery(everyMs: number, signal: AbortSignal): Promise<void>;
  status(): StreamStatus;
}

export function createDesiredStream<S>(source: DesiredSource<S>, deps: DesiredStreamDeps): DesiredStream {
  return new ReconnectingStream(source, deps);
}

class ReconnectingStream<S> implements DesiredStream {
  private readonly source: DesiredSource<S>;
  private readonly deps: DesiredStreamDeps;
  private current: StreamStatus;
  private fromZero = false;
  /** How long to wait before the stream is reopened from 0. */
  private replayDelayMs = 0;
  /** How many connections in a row from this version failed before they delivered anything. */
  private stuck = { version: 0n, times: 0 };
  private endConnection: () => void = () => undefined;
  private readonly delay: ReconnectDelay;
  /** The last failure that was logged as a warning. */
  private warned: { readonly reason: string | undefined; readonly atMs: number } | undefined;

  constructor(source: DesiredSource<S>, deps: DesiredStreamDeps) {
    this.source = source;
    this.deps = deps;
    this.delay = createReconnectDelay(deps.random);
    this.current = { state: "idle", sinceMs: deps.clock.wallMs(), reconnects: 0 };
  }

  status(): StreamStatus {
    return this.current;
  }

  reconnectFromZero(afterMs = 0): void {
    this.fromZero = true;
    this.replayDelayMs = afterMs;
    this.endConnection();
  }

  async replayEvery(everyMs: number, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.deps;
    for (;;) {
      await sleep(clock, uniform(random, everyMs * 0.8, everyMs), signal);
      this.reconnectFromZero();
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    let restartedAtOnce = false;
    try {
      while (!signal.aborted) {
        const ended = await this.connect(signal);
        if (ended === "aborted" && this.replayDelayMs > 0)
          await sleep(this.deps.clock, this.replayDelayMs, signal).catch(() => undefined);
        this.replayDelayMs = 0;
        if (ended === "aborted" || signal.aborted) continue;
        if (this.isUnsupported(ended)) {
          await this.rest(signal);
          continue;
        }
        if (achievedSomething(ended)) restartedAtOnce = false;
        let delayMs = this.delay.afterMs(ended);
        if (ended.code === "out_of_range") {
          this.fromZero = true;
          if (!restartedAtOnce) delayMs = 0;
          restartedAtOnce = true;
        }
        this.announceWait(ended, delayMs);
        await sleep(this.deps.clock, delayMs, signal).catch(() => undefined);
        if (!signal.aborted) this.countReconnect();
      }
    } finally {
      this.enter("stopped");
    }
  }

  /** Runs one connection until it ends; "aborted" for a replay or a stop. */
  private async connect(signal: AbortSignal): Promise<EndedConnection | "aborted"> {
    const { clock } = this.deps;
    // Only after the last connection is closed, because a state that it still delivered could move the cursor away
    // from 0 again.
    if (this.fromZero) this.source.resetCursor();
    this.fromZero = false;
    const linked = linkSignals(signal);
    this.endConnection = () => linked.abort();
    // Until it is open: an attempt is no news.
    if (this.current.state !== "unsupported") this.enter("connecting");
    const proof = clock.setTimer(provenByPingsMs, () => this.enter("open"));
    const tellSign = () => this.source.onSign?.();
    const promise = clock.setTimer(promisingMs, () => notify(tellSign));
    const startedMs = clock.nowMs();
    let states: AsyncIterator<S> | undefined;
    let broughtMessages = false;
    let statesTaken = 0;
    try {
      const version = this.source.cursor();
      states = this.source.open(version, linked.signal)[Symbol.asyncIterator]();
      while (!linked.signal.aborted) {
        const next = await pull(states);
        if (linked.signal.aborted) break;
        if (next.kind !== "state") {
          const ended = { broughtMessages, livedMs: clock.nowMs() - startedMs };
          if (next.kind === "end") return ended;
          return { ...ended, ...this.failed(next.error, broughtMessages ? undefined : version) };
        }
        if (!broughtMessages) {
          broughtMessages = true;
          proof.cancel();
          promise.cancel();
          this.stuck = { version: 0n, times: 0 };
          this.enter("open", { lastError: undefined });
        }
        notify(tellSign);
        await this.source.onState(next.state);
        statesTaken += 1;
        if (statesTaken % statesPerTurn === 0)
          await sleep(clock, turnMs, linked.signal).catch(() => undefined);
      }
      return "aborted";
    } finally {
      proof.cancel();
      promise.cancel();
      this.endConnection = () => undefined;
      linked.abort();
      await states?.return?.().catch(() => undefined);
    }
  }

  private isUnsupported({ code, broughtMessages }: EndedConnection): boolean {
    return code === "unimplemented" && this.source.isAddition === true && !broughtMessages;
  }

  private async rest(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.deps;
    if (this.current.state !== "unsupported") {
      this.enter("unsupported");
      log?.info("the control plane is too old for this kind of object; trying again later", {
        controller: this.source.controller,
      });
    }
    const delayMs = uniform(random, unsupportedMs.min, unsupportedMs.max);
    await sleep(clock, delayMs, signal).catch(() => undefined);
  }

  /** `version`: where the connection resumed, if it delivered nothing. */
  private failed(
    error: unknown,
    version: bigint | undefined,
  ): Pick<EndedConnection, "code" | "retryAfterMs" | "reach"> {
    const known = error instanceof ControlPlaneError;
    const code = known ? error.code : "unknown";
    // A stream has no deadline but that of a message, unless a server or proxy sends the code.
    const isOfMessage = code === "deadline_exceeded" && known && error.reach !== "answered";
    if (version !== undefined && (isOfMessage || !unrelatedCodes.has(code)))
      this.stuck = { version, times: version === this.stuck.version ? this.stuck.times + 1 : 1 };
    if (this.isStuck)
      notify(() => this.deps.metrics?.controlPlaneStuck.inc({ controller: this.source.controller }));
    const reason = error instanceof Error ? error.message : String(error);
    const message = this.isStuck ? `stuck behind version ${this.stuck.version}: ${reason}` : reason;
    this.change({ lastError: { code, message, atMs: this.deps.clock.wallMs() } });
    return known ? { code, retryAfterMs: error.retryAfterMs, reach: error.reach } : { code };
  }

  private announceWait({ code }: EndedConnection, delayMs: number): void {
    this.enter("waiting");
    const reason = code === undefined ? undefined : this.current.lastError?.message;
    const fields = { controller: this.source.controller, code, reason, delayMs: Math.round(delayMs) };
    const { log } = this.deps;
    if (code === "unauthenticated" || code === "permission_denied")
      log?.error("the control plane rejected this agent", { ...fields, remedy: "check control.token" });
    else if (code === "failed_precondition")
      log?.error("the control plane does not serve this agent's region", {
        ...fields,
        remedy: "check region",
      });
    else if (this.isStuck)
      log?.error("the stream of desired state is stuck at an unreadable message", {
        ...fields,
        version: this.stuck.version,
        remedy: "check the control plane's first message after this version",
      });
    else if (code === undefined) log?.info("the control plane ended the stream", fields);
    else log?.[this.isRepeated(reason) ? "debug" : "warn"]("the stream of desired state failed", fields);
  }

  /** Whether the same failure was logged within the last minute. A control plane that is not up yet is retried often. */
  private isRepeated(reason: string | undefined): boolean {
    const nowMs = this.deps.clock.nowMs();
    const { warned } = this;
    if (warned !== undefined && warned.reason === reason && nowMs - warned.atMs < warnEveryMs) return true;
    this.warned = { reason, atMs: nowMs };
    return false;
  }

  private get isStuck(): boolean {
    return this.stuck.times >= stuckAfter;
  }

  private countReconnect(): void {
    this.change({ reconnects: this.current.reconnects + 1 });
    notify(() => this.deps.metrics?.controlPlaneReconnects.inc({ controller: this.source.controller }));
  }

  private enter(state: StreamStatus["state"], also: StatusChange = {}): void {
    this.change({ state, sinceMs: this.deps.clock.wallMs(), ...also });
  }

  private change(change: StatusChange): void {
    const { lastError, ...status } = { ...this.current, ...change };
    this.current = lastError === undefined ? status : { ...status, lastError };
    notify(() => this.source.onStatus?.(this.current));
  }
}

type StatusChange = Partial<Omit<StreamStatus, "lastError">> & {
  readonly lastError?: StreamStatus["lastError"];
};

type Pulled<S> =
  | { readonly kind: "state"; readonly state: S }
  | { readonly kind: "end" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Returns a failure of the stream as a value, so that it cannot be confused with an error of onState. */
async function pull<S>(states: AsyncIterator<S>): Promise<Pulled<S>> {
  try {
    const next = await states.next();
    return next.done === true ? { kind: "end" } : { kind: "state", state: next.value };
  } catch (error) {
    return { kind: "failed", error };
  }
}
