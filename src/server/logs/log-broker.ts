// Brings those who read logs together with the agents that can read them. An agent keeps a stream open, on which requests go
// out; its lines come in calls of their own, and go straight to the reader. Nothing is stored, and nothing is logged (K7).
//
// - Lines count only for a reader of the region that the agent speaks for, and only from the agent that answered first.
// - A reader that waits for longer than an agent needs for two signs of life is told that the agent is gone.
// - Lines that get lost between the two are counted: each call says how many lines were sent before.
import { randomBytes } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { withTimeout } from "../../concurrency/abort.ts";
import { ChangeSignal } from "../../concurrency/change-signal.ts";
import type { Clock, Timer } from "../../concurrency/clock.ts";
import {
  type LogEnd,
  type LogRequest,
  LogRequestSchema,
  type SendLogLinesRequest,
} from "../../gen/ctrl/v1/logs_pb.ts";
import type { Log } from "../../telemetry/log.ts";
import type { LineBuffer } from "./line-buffer.ts";
import { LogRelay } from "./log-relay.ts";
import { encodeTicket, parseTicket } from "./log-ticket.ts";
import { createMailbox } from "./sealed-message.ts";
import type { ServerChannel } from "./server-channel.ts";

export interface LogBrokerDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** To the other servers; absent if there are none. */
  readonly channel?: ServerChannel | undefined;
}

export interface LogSource {
  readonly region: string;
  readonly buffer: LineBuffer;
  /** Nothing more comes. Undefined: the agent cannot be reached, or not any more. */
  onEnd(end: LogEnd | undefined): void;
}

export type AskedLog = MessageInitShape<typeof LogRequestSchema> & { readonly follow: boolean };

interface OpenSource extends LogSource {
  readonly follow: boolean;
  /** The process that sends the lines. */
  sender: string | undefined;
  /** How many lines have been sent so far. */
  expected: bigint;
  heardAtMs: number;
  isLocal: boolean;
}

interface AgentStream {
  readonly requests: LogRequest[];
  readonly changed: ChangeSignal;
}

/** An agent answers at once, and then at least every 3 s. */
const silenceMs = 12_000;
const answerMs = 8_000;
const checkEveryMs = 1_000;
const requestsMax = 200;
const roomMs = 5_000;
const sourceIdBytes = 16;

export class LogBroker {
  private readonly deps: LogBrokerDeps;
  private readonly id = randomBytes(8).toString("hex");
  private readonly sources = new Map<string, OpenSource>();
  /** Per region, the newest last. */
  private readonly streams = new Map<string, AgentStream[]>();
  private readonly relay: LogRelay | undefined;
  private readonly publicKey: Buffer;
  private timer: Timer | undefined;

  constructor(deps: LogBrokerDeps) {
    this.deps = deps;
    const { clock, channel } = deps;
    this.relay =
      channel &&
      new LogRelay({
        ...{ clock, channel, id: this.id },
        readers: () => [...this.sources].filter(([, { isLocal }]) => !isLocal).map(([id]) => id),
        onRequest: (region, request) => this.passOn(region, request),
        onLines: (region, id, lines) => void this.take(region, id, lines).catch(() => undefined),
      });
    this.publicKey = (this.relay?.mailbox ?? createMailbox()).publicKey;
  }

  /** The number of requests that wait for lines. */
  get openCount(): number {
    return this.sources.size;
  }

  /** Asks the agent of the region. Returns the function that stops it. */
  open(source: LogSource, asked: AskedLog): () => void {
    const { region, buffer, onEnd } = source;
    const id = randomBytes(sourceIdBytes).toString("hex");
    const ticket = encodeTicket({ server: this.id, id, publicKey: this.publicKey });
    const request = create(LogRequestSchema, { ...asked, ticket });
    const heardAtMs = this.deps.clock.nowMs();
    const isLocal = this.deliver(region, request);
    const opened = { region, buffer, onEnd, follow: asked.follow, sender: undefined, expected: 0n };
    this.sources.set(id, { ...opened, heardAtMs, isLocal });
    this.timer ??= this.deps.clock.setTimer(checkEveryMs, () => this.check());
    if (!isLocal && this.relay === undefined) queueMicrotask(() => this.finish(id, undefined));
    if (!isLocal)
      this.relay?.ask(region, request).catch((error: unknown) => {
        this.deps.log.warn("a request for logs could not be sent to the other servers", { error });
        this.finish(id, undefined);
      });
    return () => {
      if (this.sources.delete(id) && !isLocal) this.relay?.drop(id);
    };
  }

  /** The requests for one agent; the first message says that the stream is open. */
  async *requests(region: string, signal: AbortSignal): AsyncGenerator<LogRequest, void> {
    const stream: AgentStream = { requests: [], changed: new ChangeSignal() };
    // So that requests of readers on other servers arrive here.
    await this.relay?.start();
    const streams = this.streams.get(region) ?? [];
    this.streams.set(region, [...streams, stream]);
    try {
      yield create(LogRequestSchema);
      for (;;) {
        const request = stream.requests.shift();
        if (request === undefined) await stream.changed.wait(signal);
        else yield request;
      }
    } finally {
      const left = (this.streams.get(region) ?? []).filter((each) => each !== stream);
      if (left.length > 0) this.streams.set(region, left);
      else this.streams.delete(region);
    }
  }

  /** Takes lines from the agent of the region. Resolves to whether somebody still reads them. */
  async receive(region: string, lines: SendLogLinesRequest): Promise<boolean> {
    const ticket = parseTicket(lines.ticket);
    if (ticket === undefined) throw new ConnectError("the ticket is not one of ours", Code.InvalidArgument);
    if (ticket.server === this.id) return this.take(region, ticket.id, lines);
    return (await this.relay?.forward(region, ticket, lines)) ?? false;
  }

  private async take(region: string, id: string, lines: SendLogLinesRequest): Promise<boolean> {
    const source = this.sources.get(id);
    if (source === undefined || source.region !== region) return false;
    source.sender ??= lines.instanceId;
    if (source.sender !== lines.instanceId) return false;
    source.heardAtMs = this.deps.clock.nowMs();
    // The database was asked twice to pass it on.
    if (lines.linesBefore < source.expected) return true;
    const { buffer, follow } = source;
    buffer.addDropped(lines.linesBefore - source.expected);
    buffer.add(lines.entries);
    source.expected = lines.linesBefore + BigInt(lines.entries.filter(({ isNote }) => !isNote).length);
    if (lines.end !== undefined) this.finish(id, lines.end);
    // Who follows a log wants its newest lines; who reads it to its end wants all of them.
    else if (!follow && buffer.isFull) await this.waitForRoom(buffer);
    source.heardAtMs = this.deps.clock.nowMs();
    return this.sources.has(id);
  }

  private async waitForRoom(buffer: LineBuffer): Promise<void> {
    const never = new AbortController().signal;
    await withTimeout(this.deps.clock, roomMs, never, (inner) => buffer.room(inner)).catch(() => undefined);
  }

  /** Once a second, for as long as somebody waits for lines. */
  private check(): void {
    const nowMs = this.deps.clock.nowMs();
    for (const [id, source] of this.sources) {
      const limitMs = source.sender === undefined ? answerMs : silenceMs;
      if (nowMs - source.heardAtMs > limitMs) this.finish(id, undefined);
    }
    this.relay?.keep();
    const isNeeded = this.sources.size > 0;
    this.timer = isNeeded ? this.deps.clock.setTimer(checkEveryMs, () => this.check()) : undefined;
  }

  private finish(id: string, end: LogEnd | undefined): void {
    const source = this.sources.get(id);
    if (source === undefined) return;
    this.sources.delete(id);
    source.onEnd(end);
  }

  private passOn(region: string, request: LogRequest): void {
    const ticket = parseTicket(request.ticket);
    if (ticket !== undefined && this.deliver(region, request)) this.relay?.noteAsked(ticket);
  }

  private deliver(region: string, request: LogRequest): boolean {
    const stream = this.streams.get(region)?.at(-1);
    if (stream === undefined || stream.requests.length >= requestsMax) return false;
    stream.requests.push(request);
    stream.changed.wakeAll();
    return true;
  }
}
