// The network between two parts of the world: latency, loss, partitions and cut connections. Messages of one connection
// stay in order; messages of different connections may overtake one another.
import type { Clock, Timer } from "../src/concurrency/clock.ts";
import type { Choices } from "./choices.ts";
import type { SimProcess } from "./sim-process.ts";

export interface Weather {
  /** Most messages take a small part of it. Below 3 s, so that a write never arrives after its lease has expired. */
  latencyMaxMs: number;
  /** The share of requests that never arrive. */
  requestLoss: number;
  /** The share of responses that never arrive, to requests that had their effect. */
  responseLoss: number;
  /** The share of messages of a stream with which its connection breaks. */
  cutRate: number;
  /** The share of messages of a stream after which all earlier ones of it come again. */
  replayRate: number;
  /** How late the messages of a stream are, because its server lags. */
  eventDelayMs: number;
  /** Nothing passes. */
  isDown: boolean;
}

export const calm: Weather = {
  latencyMaxMs: 20,
  requestLoss: 0,
  responseLoss: 0,
  cutRate: 0,
  replayRate: 0,
  eventDelayMs: 0,
  isDown: false,
};

// An agent pings its control plane, and notices a dead connection after 10 s without a frame and 5 s without a response.
const pingMs = 15_000;

/** How an open stream ends. */
export type Cut = "reset" | "end";

/** Where a message is when a plan interferes: about to be sent, executed by the peer, or a part of a stream on its way. */
export type MessagePoint = "request" | "response" | "event";

/** What a plan does to one message. A message that is held up holds up those behind it in its stream. */
export type Interference =
  | { readonly kind: "lose" }
  | { readonly kind: "cut" }
  | { readonly kind: "hold"; readonly ms: number };

/** Called for each message; it may also kill the process. */
export type Interfere = (point: MessagePoint, what: string) => Interference | undefined;

export interface OpenStream {
  cut(how: Cut): void;
}

export interface LinkDeps {
  readonly interfere?: Interfere;
  /** Whether the process pings the peer. Otherwise the silence of a stream is noticed only by its reader. */
  readonly hasPings?: boolean;
  readonly clock: Clock;
  readonly choices: Choices;
}

export class Link {
  readonly name: string;
  readonly weather: Weather = { ...calm };
  readonly choices: Choices;
  private readonly clock: Clock;
  private readonly process: SimProcess;
  private readonly streams = new Set<OpenStream>();
  private readonly hasPings: boolean;
  private readonly interfere: Interfere | undefined;
  private held: (() => void)[] = [];
  private dead: Timer | undefined;

  constructor(name: string, process: SimProcess, { clock, choices, hasPings = false, interfere }: LinkDeps) {
    this.name = name;
    this.interfere = interfere;
    this.process = process;
    this.clock = clock;
    this.choices = choices;
    this.hasPings = hasPings;
  }

  get isDown(): boolean {
    return this.weather.isDown;
  }

  setDown(isDown: boolean): void {
    if (isDown === this.isDown) return;
    this.weather.isDown = isDown;
    this.dead?.cancel();
    if (isDown) {
      if (this.hasPings) this.dead = this.clock.setTimer(pingMs, () => this.cutAll("reset"));
      return;
    }
    const { held } = this;
    this.held = [];
    for (const deliver of held) this.carry(deliver);
  }

  calmDown(): void {
    this.setDown(false);
    Object.assign(this.weather, calm);
  }

  /**
   * Delivers a message after its latency. While the link is down it is sent again, as TCP does. But if the sender cannot
   * reset the connection in that time, the message is lost: a write that is delivered after a partition and a stall is
   * what docs/high-availability.md lists as possible, and this world does not make it.
   */
  carry(deliver: () => void, notBeforeMs = 0): number {
    const latencyMs = 0.2 + this.choices.next() ** 4 * this.weather.latencyMaxMs;
    const dueMs = Math.max(this.clock.nowMs() + latencyMs, notBeforeMs);
    this.clock.setTimer(dueMs - this.clock.nowMs(), () => {
      if (!this.isDown) deliver();
      else if (this.process.isAlive && !this.process.isStalled)
        this.held.push(() => {
          if (this.process.isAlive && !this.process.isStalled) deliver();
        });
    });
    return dueMs;
  }

  /** What happens to a message here: by the weather, and by the plan. */
  fateOf(point: MessagePoint, what: string): Interference | undefined {
    const planned = this.interfere?.(point, what);
    const { requestLoss, responseLoss, cutRate } = this.weather;
    if (point === "event") return this.choices.chance(cutRate) ? { kind: "cut" } : planned;
    return this.choices.chance(point === "request" ? requestLoss : responseLoss) ? { kind: "lose" } : planned;
  }

  /** When a message arrives at the earliest. */
  notBefore(fate: Interference | undefined): number {
    return fate?.kind === "hold" ? this.clock.nowMs() + fate.ms : 0;
  }

  /** When a message of a stream arrives at the earliest. */
  eventNotBefore(fate: Interference | undefined): number {
    return Math.max(this.notBefore(fate), this.clock.nowMs() + this.weather.eventDelayMs);
  }

  /** Returns a function that forgets the stream. */
  open(stream: OpenStream): () => void {
    this.streams.add(stream);
    return () => void this.streams.delete(stream);
  }

  /** Breaks the connections of all open streams. */
  cutAll(how: Cut): void {
    for (const stream of [...this.streams]) stream.cut(how);
  }
}
