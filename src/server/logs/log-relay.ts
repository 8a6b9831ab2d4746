// Connects readers and agents that are on different servers of one control plane. Requests for logs go to every server, and
// the one that has the stream of the region's agent passes them on. Lines come back sealed for the server that asked. Each
// server repeats which readers it has; for any other, the agent is told to stop.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Clock } from "../../concurrency/clock.ts";
import {
  type LogRequest,
  LogRequestSchema,
  type SendLogLinesRequest,
  SendLogLinesRequestSchema,
} from "../../gen/ctrl/v1/logs_pb.ts";
import type { LogTicket } from "./log-ticket.ts";
import { createMailbox, type Mailbox, sealFor } from "./sealed-message.ts";
import { messageCharsMax, type ServerChannel } from "./server-channel.ts";

export interface RelayDeps {
  readonly clock: Clock;
  /** Of this server. */
  readonly id: string;
  readonly channel: ServerChannel;
  /** The readers of this server that wait for lines from elsewhere. */
  readers(): readonly string[];
  onRequest(region: string, request: LogRequest): void;
  onLines(region: string, id: string, lines: SendLogLinesRequest): void;
}

type Message =
  | { readonly kind: "ask"; readonly from: string; readonly region: string; readonly data: string }
  | { readonly kind: "keep" | "drop"; readonly from: string; readonly ids: readonly string[] }
  | {
      readonly kind: "lines";
      readonly to: string;
      readonly id: string;
      readonly region: string;
      readonly part: number;
      readonly parts: number;
      readonly data: string;
    };

const keepEveryCalls = 3;
/** A server that has not been heard for this long, or does not list a reader, has no use for its lines. */
const keptMs = 12_000;
// The database passes them to every server. What is above is dropped, and the reader learns how much.
const bytesPerSecondMax = 1024 * 1024;
// Base64, and the names around it.
const partBytes = Math.floor(((messageCharsMax - 500) * 3) / 4);
const remoteMax = 10_000;

export class LogRelay {
  readonly mailbox: Mailbox = createMailbox();
  private readonly deps: RelayDeps;
  /** Until when the lines of a reader of another server are wanted. */
  private readonly remote = new Map<string, number>();
  private readonly incomplete = new Map<string, string[]>();
  private listening: Promise<void> | undefined;
  private freeAtMs = 0;
  private keepCalls = 0;

  constructor(deps: RelayDeps) {
    this.deps = deps;
  }

  /** Resolves when messages of the other servers arrive. */
  async start(): Promise<void> {
    this.listening ??= this.deps.channel.listen((text) => this.receive(text));
    try {
      await this.listening;
    } catch (error) {
      this.listening = undefined;
      throw error;
    }
  }

  async ask(region: string, request: LogRequest): Promise<void> {
    await this.start();
    const data = Buffer.from(toBinary(LogRequestSchema, request)).toString("base64");
    await this.publish([{ kind: "ask", from: this.deps.id, region, data }]);
  }

  /** Repeats which readers this server has. Called once a second; every third call counts. */
  keep(): void {
    const ids = this.deps.readers();
    this.keepCalls += 1;
    if (ids.length === 0 || this.keepCalls % keepEveryCalls !== 0) return;
    this.publish([{ kind: "keep", from: this.deps.id, ids }]).catch(() => undefined);
  }

  /** A reader of this server has left. If that gets lost, the others find out by its missing repetition. */
  drop(id: string): void {
    this.publish([{ kind: "drop", from: this.deps.id, ids: [id] }]).catch(() => undefined);
  }

  /** Passes lines on to the server that asked. Returns false if it does not want them. */
  async forward(
    region: string,
    { server, id, publicKey }: LogTicket,
    lines: SendLogLinesRequest,
  ): Promise<boolean> {
    const nowMs = this.deps.clock.nowMs();
    const untilMs = this.remote.get(`${server} ${id}`);
    if (untilMs === undefined || untilMs < nowMs) return false;
    const sealed = sealFor(
      publicKey,
      toBinary(SendLogLinesRequestSchema, { ...lines, ticket: new Uint8Array() }),
    );
    if (this.freeAtMs > nowMs + 1_000) return true;
    this.freeAtMs = Math.max(this.freeAtMs, nowMs) + (1_000 * sealed.length) / bytesPerSecondMax;
    const parts = Math.ceil(sealed.length / partBytes);
    await this.publish(
      Array.from({ length: parts }, (_, part) => {
        const data = sealed.subarray(part * partBytes, (part + 1) * partBytes).toString("base64");
        return { kind: "lines", to: server, id, region, part, parts, data } as const;
      }),
    );
    return true;
  }

  private publish(messages: readonly Message[]): Promise<void> {
    return this.deps.channel.publish(messages.map((message) => JSON.stringify(message)));
  }

  private receive(text: string): void {
    const message = parseMessage(text);
    if (message === undefined) return;
    const { id: own } = this.deps;
    if (message.kind === "lines") {
      if (message.to === own) this.assemble(message);
      return;
    }
    if (message.from === own) return;
    if (message.kind !== "ask") {
      this.noteReaders(message.kind, message.from, message.ids);
      return;
    }
    const request = fromBinary(LogRequestSchema, Buffer.from(message.data, "base64"));
    this.deps.onRequest(message.region, request);
  }

  /** A request from another server was passed on to an agent. */
  noteAsked({ server, id }: LogTicket): void {
    if (this.remote.size < remoteMax) this.remote.set(`${server} ${id}`, this.deps.clock.nowMs() + keptMs);
  }

  private noteReaders(kind: "keep" | "drop", from: string, ids: readonly string[]): void {
    const nowMs = this.deps.clock.nowMs();
    for (const key of ids.map((id) => `${from} ${id}`)) {
      if (kind === "drop") this.remote.delete(key);
      else if (this.remote.has(key)) this.remote.set(key, nowMs + keptMs);
    }
    for (const [key, untilMs] of this.remote) if (untilMs < nowMs) this.remote.delete(key);
  }

  private assemble({ id, region, part, parts, data }: Extract<Message, { kind: "lines" }>): void {
    const sofar = part === 0 ? [] : this.incomplete.get(id);
    this.incomplete.delete(id);
    // A part got lost: so does the whole, and the reader learns how many lines that were.
    if (sofar?.length !== part || parts > 100) return;
    sofar.push(data);
    if (sofar.length < parts) return void this.incomplete.set(id, sofar);
    const opened = this.mailbox.open(Buffer.concat(sofar.map((each) => Buffer.from(each, "base64"))));
    if (opened !== undefined) this.deps.onLines(region, id, fromBinary(SendLogLinesRequestSchema, opened));
  }
}

/** Undefined for what this version does not know. */
function parseMessage(text: string): Message | undefined {
  try {
    const message = JSON.parse(text) as Message;
    return ["ask", "keep", "drop", "lines"].includes(message.kind) ? message : undefined;
  } catch {
    return undefined;
  }
}
