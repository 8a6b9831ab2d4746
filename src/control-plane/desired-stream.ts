// The endless stream of desired state: opened again and again from the cursor, until the
// signal ends it. It brings states in order and knows nothing of what they mean.
//
// - The first connection is made at once, every later one after a wait. Only a replay,
//   and the first `out_of_range` after a good connection, reconnect without one.
// - The stream is pulled: the next state is read when onState is done with the last one,
//   so a slow reader holds the server back instead of filling memory.
// - An error of the stream is shown and waited out. An error of onState is a bug, and
//   ends run() after the connection is closed; whoever supervises it starts it again.
// - A stream may be silent for ever, because pings prove its connection. That it is not
//   held by one old server for weeks is the work of the periodic replay, which opens it anew.
// - A message that cannot be read (damaged, or larger than the limit) ends every connection at the same
//   place. It is not stepped over: unread it has no version, and a guessed one could be above others that
//   were never seen, which nothing would bring again (K2). It is said loudly instead. What was known before
//   is kept right by resync, which asks object by object; only what is new behind that message has to wait.
import { linkSignals } from "../concurrency/abort.ts";
import { createBackoff } from "../concurrency/backoff.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import { notify } from "../concurrency/notify.ts";
import { type Random, uniform } from "../concurrency/random.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { type ControlPlaneCode, ControlPlaneError } from "./error.ts";

// Servers send nothing at all, not even headers, before their first message. A connection
// that has outlived one round of pings is open all the same.
const provenByPingsMs = 15_000;

// A server that is away mostly says so sooner than this. It is no proof, but reason enough to try a call that
// has failed.
const promisingMs = 1_000;

// One failure is an accident of the connection; so many at the same place are not.
const stuckAfter = 3;
/** What servers and proxies say when they are not there, or do not want us: no message is to blame. */
const blameless: ReadonlySet<ControlPlaneCode> = new Set<ControlPlaneCode>([
  "unavailable",
  "deadline_exceeded",
  "canceled",
  "unauthenticated",
  "permission_denied",
  "unimplemented",
  "failed_precondition",
  "out_of_range",
]);

// What has arrived is read without waiting for anything. After so many states everybody else in the process
// gets a turn, and some idle time, or a flood here would hold up every other controller, timer and health
// probe (K6). Almost a thousand states a second still come in, several times what a cluster takes.
const statesPerTurn = 4;
const turnMs = 4;

export interface DesiredSource<S> {
  readonly controller: string;
  open(versionLastSeen: bigint, signal: AbortSignal): AsyncIterable<S>;
  /** Asked anew for each connection (K2). */
  cursor(): bigint;
  /** Makes the cursor 0: for a replay, and when the server says that it is ahead of it. */
  resetCursor(): void;
  onState(state: S): void | Promise<void>;
  /**
   * Told of every sign that the server is there, a connection that has not failed yet or a state: what has failed
   * at it is worth another try.
   */
  onSign?(): void;
  /** Told of every change. What it throws changes nothing. */
  onStatus?(status: StreamStatus): void;
}

export interface StreamStatus {
  readonly state: "idle" | "connecting" | "open" | "waiting" | "stopped";
  /** Wall time at which the state was entered. */
  readonly sinceMs: number;
  /** How often it was opened again after it had ended. */
  readonly reconnects: number;
  /** Why the last connection failed; gone with the first message of a later one. */
  readonly lastError?: {
    readonly code: ControlPlaneCode;
    readonly message: string;
    readonly atMs: number;
  };
}

export interface DesiredStreamDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics?: Pick<Metrics, "controlPlaneReconnects" | "controlPlaneStuck"> | undefined;
  readonly log?: Log | undefined;
}

export interface DesiredStream {
  /** Resolves when the signal has aborted and the connection is closed. To be called once at a time. */
  run(signal: AbortSignal): Promise<void>;
  /** Resets the cursor and opens the stream anew: at once if it is open, else when its wait is over. */
  reconnectFromZero(): void;
  status(): StreamStatus;
}

export function createDesiredStream<S>(source: DesiredSource<S>, deps: DesiredStreamDeps): DesiredStream {
  return new ReconnectingStream(source, deps);
}

class ReconnectingStream<S> implements DesiredStream {
  readonly #source: DesiredSource<S>;
  readonly #deps: DesiredStreamDeps;
  #status: StreamStatus;
  #fromZero = false;
  /** How often in a row connections from this version failed before they brought anything. */
  #stuck = { version: 0n, times: 0 };
  #endConnection: () => void = () => undefined;

  constructor(source: DesiredSource<S>, deps: DesiredStreamDeps) {
    this.#source = source;
    this.#deps = deps;
    this.#status = { state: "idle", sinceMs: deps.clock.wallMs(), reconnects: 0 };
  }

  status(): StreamStatus {
    return this.#status;
  }

  reconnectFromZero(): void {
    this.#fromZero = true;
    this.#endConnection();
  }

  async run(signal: AbortSignal): Promise<void> {
    const delay = createReconnectDelay(this.#deps.random);
    let restartedAtOnce = false;
    try {
      while (!signal.aborted) {
        const ended = await this.#connect(signal);
        if (ended === "asked to" || signal.aborted) continue;
        if (achievedSomething(ended)) restartedAtOnce = false;
        let delayMs = delay.afterMs(ended);
        if (ended.code === "out_of_range") {
          this.#fromZero = true;
          if (!restartedAtOnce) delayMs = 0;
          restartedAtOnce = true;
        }
        this.#announceWait(ended, delayMs);
        await sleep(this.#deps.clock, delayMs, signal).catch(() => undefined);
        if (!signal.aborted) this.#countReconnect();
      }
    } finally {
      this.#enter("stopped");
    }
  }

  /** One connection, from its opening to its end. */
  async #connect(signal: AbortSignal): Promise<EndedConnection | "asked to"> {
    const { clock } = this.#deps;
    // Only now that the last connection is closed: a state that it still delivered could
    // move the cursor away from 0 again.
    if (this.#fromZero) this.#source.resetCursor();
    this.#fromZero = false;
    const linked = linkSignals(signal);
    this.#endConnection = () => linked.abort();
    this.#enter("connecting");
    const proof = clock.setTimer(provenByPingsMs, () => this.#enter("open"));
    const tellSign = () => this.#source.onSign?.();
    const promise = clock.setTimer(promisingMs, () => notify(tellSign));
    const startedMs = clock.nowMs();
    let states: AsyncIterator<S> | undefined;
    let broughtMessages = false;
    let statesTaken = 0;
    try {
      const version = this.#source.cursor();
      states = this.#source.open(version, linked.signal)[Symbol.asyncIterator]();
      while (!linked.signal.aborted) {
        const next = await pull(states);
        if (linked.signal.aborted) break;
        if (next.kind !== "state") {
          const ended = { broughtMessages, livedMs: clock.nowMs() - startedMs };
          if (next.kind === "end") return ended;
          return { ...ended, ...this.#failed(next.error, broughtMessages ? undefined : version) };
        }
        if (!broughtMessages) {
          broughtMessages = true;
          proof.cancel();
          promise.cancel();
          this.#stuck = { version: 0n, times: 0 };
          this.#enter("open", { lastError: undefined });
        }
        notify(tellSign);
        await this.#source.onState(next.state);
        statesTaken += 1;
        if (statesTaken % statesPerTurn === 0)
          await sleep(clock, turnMs, linked.signal).catch(() => undefined);
      }
      return "asked to";
    } finally {
      proof.cancel();
      promise.cancel();
      this.#endConnection = () => undefined;
      linked.abort();
      await states?.return?.().catch(() => undefined);
    }
  }

  /** `version`: from where the connection was to go on, if it brought nothing. */
  #failed(error: unknown, version: bigint | undefined): Pick<EndedConnection, "code" | "retryAfterMs"> {
    const known = error instanceof ControlPlaneError;
    const code = known ? error.code : "unknown";
    if (version !== undefined && !blameless.has(code))
      this.#stuck = { version, times: version === this.#stuck.version ? this.#stuck.times + 1 : 1 };
    if (this.#isStuck)
      notify(() => this.#deps.metrics?.controlPlaneStuck.inc({ controller: this.#source.controller }));
    const reason = error instanceof Error ? error.message : String(error);
    const message = this.#isStuck ? `stuck behind version ${this.#stuck.version}: ${reason}` : reason;
    this.#change({ lastError: { code, message, atMs: this.#deps.clock.wallMs() } });
    return { code, retryAfterMs: known ? error.retryAfterMs : undefined };
  }

  #announceWait({ code }: EndedConnection, delayMs: number): void {
    this.#enter("waiting");
    const reason = code === undefined ? undefined : this.#status.lastError?.message;
    const fields = { controller: this.#source.controller, code, reason, delayMs: Math.round(delayMs) };
    const { log } = this.#deps;
    if (code === "unauthenticated" || code === "permission_denied")
      log?.error("the control plane refuses this agent", { ...fields, remedy: "check control.token" });
    else if (code === "failed_precondition")
      log?.error("the control plane does not serve this agent's region", {
        ...fields,
        remedy: "check region",
      });
    else if (this.#isStuck)
      log?.error("the stream of desired state does not get past a message", {
        ...fields,
        version: this.#stuck.version,
        remedy: "look at the first message of the control plane behind this version",
      });
    else if (code === undefined) log?.info("the control plane ended the stream", fields);
    else log?.warn("the stream of desired state failed", fields);
  }

  get #isStuck(): boolean {
    return this.#stuck.times >= stuckAfter;
  }

  #countReconnect(): void {
    this.#change({ reconnects: this.#status.reconnects + 1 });
    notify(() => this.#deps.metrics?.controlPlaneReconnects.inc({ controller: this.#source.controller }));
  }

  #enter(state: StreamStatus["state"], also: StatusChange = {}): void {
    this.#change({ state, sinceMs: this.#deps.clock.wallMs(), ...also });
  }

  #change(change: StatusChange): void {
    const { lastError, ...status } = { ...this.#status, ...change };
    this.#status = lastError === undefined ? status : { ...status, lastError };
    notify(() => this.#source.onStatus?.(this.#status));
  }
}

type StatusChange = Partial<Omit<StreamStatus, "lastError">> & {
  readonly lastError?: StreamStatus["lastError"] | undefined;
};

type Pulled<S> =
  | { readonly kind: "state"; readonly state: S }
  | { readonly kind: "end" }
  | { readonly kind: "failed"; readonly error: unknown };

/** The next state, with a failure of the stream as a value: one of onState must not be taken for it. */
async function pull<S>(states: AsyncIterator<S>): Promise<Pulled<S>> {
  try {
    const next = await states.next();
    return next.done === true ? { kind: "end" } : { kind: "state", state: next.value };
  } catch (error) {
    return { kind: "failed", error };
  }
}

// How long to wait before a stream is opened again. Drawn at random from one second up to
// a cap, so that a fleet that lost its control plane does not come back as one wave; the
// cap grows while connections achieve nothing, so that a server which accepts and drops
// is not hammered for ever.

const growing = { minMs: 1_000, initialMs: 5_000, maxMs: 60_000, jitter: "full" } as const;

// A connection that lasted this long worked, even if there was nothing to say.
const healthyAfterMs = 60_000;

// A refused token is not made good by asking often, and somebody has to be able to read the log.
const refusedMs = { min: 30_000, max: 60_000 };

/** How a connection ended. */
export interface EndedConnection {
  readonly broughtMessages: boolean;
  readonly livedMs: number;
  /** Absent when the server ended the stream in an orderly way. */
  readonly code?: ControlPlaneCode;
  readonly retryAfterMs?: number | undefined;
}

interface ReconnectDelay {
  afterMs(ended: EndedConnection): number;
}

export function createReconnectDelay(random: Random): ReconnectDelay {
  const backoff = createBackoff(growing, random);
  return {
    afterMs(ended) {
      if (achievedSomething(ended)) backoff.reset();
      const drawnMs = backoff.nextMs();
      // The hint is a lower limit and not the wait itself: all agents get the same one.
      const hintedMs = ended.retryAfterMs === undefined ? 0 : ended.retryAfterMs + drawnMs - growing.minMs;
      const refused = ended.code === "unauthenticated" || ended.code === "permission_denied";
      const calmMs = refused ? uniform(random, refusedMs.min, refusedMs.max) : drawnMs;
      return Math.max(calmMs, hintedMs);
    },
  };
}

function achievedSomething({ broughtMessages, livedMs }: EndedConnection): boolean {
  return broughtMessages || livedMs >= healthyAfterMs;
}
