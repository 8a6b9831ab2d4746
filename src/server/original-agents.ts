// Agents of the original krane, which this server serves too. They send no RegionKey, which every krane sends with each
// request, and they never report their state. What people see of such an agent is inferred from what it does send.
//
// - It handles the messages of a stream one after the other, moves its cursor when one is done, and ends the stream when
//   one fails. So everything up to the cursor that it opens a stream with is settled. What was sent after that counts as
//   settled once the stream has stayed open for as long as the agent may need for it.
// - A stream that keeps ending at the same message is trouble with that object.
// - It deletes whatever the control plane answers `not_found` for. So it gets `not_found` about nothing: only a Delete
//   removes an object (K5).
// - It never takes its cursor back. With one above the region's counter, as after a restore, it gets everything on each
//   stream that it opens.
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Clock, sleep } from "../concurrency/clock.ts";
import {
  type ReportAgentStateRequest,
  ReportAgentStateRequestSchema,
} from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { RegionKey } from "../gen/ctrl/v1/region_pb.ts";
import {
  type ObjectStatus,
  ObjectStatusSchema,
  ObjectStatus_Outcome as Outcome,
  StreamStatus_State as State,
} from "../gen/krane/v1/agent_pb.ts";
import { type KindName, kindOf, type StateMessage } from "../kinds/kinds.ts";
import type { Store } from "./store.ts";

export function isOriginalAgent({ regionKey }: { readonly regionKey?: RegionKey }): boolean {
  return regionKey === undefined;
}

/** In the place of `not_found`, for which such an agent would delete the object. */
export function unknownToOriginal(kind: KindName, id: string, region: string): ConnectError {
  const message = `no ${kind} ${id} in region ${region}; it is left alone, because only a Delete removes an object`;
  return new ConnectError(message, Code.FailedPrecondition);
}

// It makes five requests per second to Kubernetes, and a message takes up to six of them.
const messageMs = 1_500;
// A message that fails ends the stream; the end may be on its way.
const graceMs = 8_000;
const storeEveryMs = 5_000;
// The state of an agent that reports it is newer than this.
const reportedMs = 90_000;
// A stream that ends sooner ended because of a message.
const shortStreamMs = 60_000;
const failuresMin = 3;
// Beyond this many unsettled messages, the last ones count as one.
const sentMax = 10_000;

interface Sent {
  readonly version: bigint;
  /** When it counts as settled, if the stream is still open then. */
  readonly doneMs: number;
}

/** A message of a stream. */
interface Message {
  readonly version: bigint;
  readonly id: string;
  readonly key: string;
}

interface Failing extends Message {
  readonly times: number;
  /** How long the last of these streams was open. */
  readonly lastedMs: number;
}

class InferredStream {
  openSinceMs: number | undefined;
  /** What the agent has settled for sure. */
  cursor = 0n;
  settledUpTo = 0n;
  opened = 0;
  private sent: Sent[] = [];
  private openedMs = 0;
  private endedMs = 0;
  private first: Message | undefined;
  /** How many streams in a row ended soon after they began with this message. */
  private failing: Failing | undefined;
  /** The highest cursor that was above the region's counter. */
  private aheadOf = 0n;

  /** Returns where the stream starts. */
  open(cursor: bigint, nowMs: number, wallMs: number): bigint {
    const start = cursor <= this.aheadOf ? 0n : cursor;
    this.judgeLast(start, nowMs);
    this.opened += 1;
    this.openSinceMs = wallMs;
    this.openedMs = nowMs;
    this.first = undefined;
    this.sent = [];
    this.cursor = start;
    // Also where it is lower: what counted as settled may have failed after all.
    this.settledUpTo = start;
    return start;
  }

  private judgeLast(start: bigint, nowMs: number): void {
    const { first, failing } = this;
    if (failing && start >= failing.version) this.failing = undefined;
    if (first === undefined || start >= first.version || nowMs - this.openedMs > shortStreamMs) return;
    const lastedMs = Math.max(0, this.endedMs - this.openedMs);
    this.failing = { ...first, lastedMs, times: failing?.version === first.version ? failing.times + 1 : 1 };
  }

  /** The cursor is above the counter: its versions are of a history that the database does not have. */
  startOver(cursor: bigint): void {
    if (cursor > this.aheadOf) this.aheadOf = cursor;
    this.cursor = 0n;
    this.settledUpTo = 0n;
  }

  add(message: Message, nowMs: number): void {
    this.first ??= message;
    const last = this.sent.length < sentMax ? this.sent.at(-1) : this.sent.pop();
    // A message that failed late before, as with a slow webhook, may do so again.
    const lateMs = this.failing?.version === message.version ? 2 * this.failing.lastedMs : 0;
    const doneMs = Math.max(last?.doneMs ?? 0, nowMs) + messageMs + lateMs;
    this.sent.push({ version: message.version, doneMs });
  }

  end(nowMs: number): void {
    this.endedMs = nowMs;
  }

  close(): void {
    this.openSinceMs = undefined;
    this.sent = [];
  }

  settle(nowMs: number): void {
    if (this.openSinceMs === undefined) return;
    while (this.sent[0] !== undefined && this.sent[0].doneMs + graceMs <= nowMs) {
      const { version } = this.sent[0];
      if (version > this.settledUpTo) this.settledUpTo = version;
      this.sent.shift();
      this.failing = undefined;
    }
  }

  trouble(controller: string): ObjectStatus[] {
    if (this.failing === undefined || this.failing.times < failuresMin) return [];
    const { version: desiredVersion, id, key, times: attempts } = this.failing;
    const reason = `the agent ended its stream ${attempts} times when it got to this version; its log says why`;
    return [
      create(ObjectStatusSchema, {
        controller,
        id,
        key,
        desiredVersion,
        attempts,
        reason,
        outcome: Outcome.RETRYING,
      }),
    ];
  }
}

class InferredAgent {
  readonly startedAtMs: number;
  readonly streams = new Map<KindName, InferredStream>();

  constructor(startedAtMs: number) {
    this.startedAtMs = startedAtMs;
  }

  report(region: string, incarnation: string, nowMs: number): ReportAgentStateRequest {
    const streams = [...this.streams];
    for (const [, stream] of streams) stream.settle(nowMs);
    return create(ReportAgentStateRequestSchema, {
      state: {
        instanceId: "original",
        region,
        startedAtMs: BigInt(Math.trunc(this.startedAtMs)),
        inferred: true,
        controllers: streams.map(([kind, stream]) => ({
          name: kindOf(kind).controller,
          stream: {
            state: stream.openSinceMs === undefined ? State.BACKING_OFF : State.OPEN,
            cursor: stream.cursor,
            settledUpTo: stream.settledUpTo,
            connectedSinceMs: BigInt(Math.trunc(stream.openSinceMs ?? 0)),
            reconnects: stream.opened - 1,
            incarnation,
          },
          retrying: stream.trouble("").length,
        })),
      },
      troubledObjects: streams.flatMap(([kind, stream]) => stream.trouble(kindOf(kind).controller)),
    });
  }
}

export interface OriginalAgentsDeps {
  readonly store: Pick<Store, "reportAgent" | "agents" | "incarnation">;
  readonly clock: Clock;
}

/** What a followed stream gets from its feed. */
export interface FollowedFeed {
  /** Where to start. */
  readonly start: bigint;
  /** The client's cursor is above the region's counter. */
  startOver(): void;
}

/** The agents of the original that have had a stream open, by region. */
export class OriginalAgents {
  private readonly deps: OriginalAgentsDeps;
  private readonly agents = new Map<string, InferredAgent>();

  constructor(deps: OriginalAgentsDeps) {
    this.deps = deps;
  }

  /** Passes a stream on, and stores what it shows about its agent while it is open. */
  async *follow<K extends KindName>(
    kind: K,
    region: string,
    cursor: bigint,
    feed: (followed: FollowedFeed) => AsyncIterable<StateMessage<K>>,
    signal: AbortSignal,
  ): AsyncGenerator<StateMessage<K>> {
    const { clock } = this.deps;
    const stream = this.streamOf(kind, region, cursor);
    const start = stream.open(cursor, clock.nowMs(), clock.wallMs());
    const ended = new AbortController();
    const storing = this.keepStoring(region, stream, AbortSignal.any([signal, ended.signal]));
    try {
      for await (const message of feed({ start, startOver: () => stream.startOver(cursor) })) {
        stream.add(describe(kind, message), clock.nowMs());
        yield message;
      }
    } finally {
      stream.end(clock.nowMs());
      ended.abort();
      await storing;
    }
  }

  private streamOf(kind: KindName, region: string, cursor: bigint): InferredStream {
    const known = this.agents.get(region);
    const before = known?.streams.get(kind);
    // It starts at 0 with each process, and then opens all of its streams again.
    const isAlone = ![...(known?.streams.values() ?? [])].some(
      ({ openSinceMs }) => openSinceMs !== undefined,
    );
    const isRestarted = cursor === 0n && isAlone && before !== undefined && before.settledUpTo > 0n;
    const agent = known === undefined || isRestarted ? new InferredAgent(this.deps.clock.wallMs()) : known;
    this.agents.set(region, agent);
    const stream = agent.streams.get(kind) ?? new InferredStream();
    agent.streams.set(kind, stream);
    return stream;
  }

  private async keepStoring(region: string, stream: InferredStream, signal: AbortSignal): Promise<void> {
    const { opened } = stream;
    while (!signal.aborted) {
      // A store that fails now is tried again, and people see how old the state is.
      await this.store(region).catch(() => undefined);
      await sleep(this.deps.clock, storeEveryMs, signal).catch(() => undefined);
    }
    // The agent may have opened the next one already.
    if (stream.opened === opened) stream.close();
    // What cannot be stored is dropped: the region may not exist.
    await this.store(region).catch(() => this.agents.delete(region));
  }

  private async store(region: string): Promise<void> {
    const { store, clock } = this.deps;
    const agent = this.agents.get(region);
    if (agent === undefined) return;
    const [{ state } = { state: undefined }] = await store.agents(region);
    const atMs = clock.wallMs();
    const isReported = state !== undefined && state.report.state?.inferred !== true;
    // An agent that reports its state is connected as well, and knows better.
    if (isReported && atMs - state.atMs < reportedMs) return;
    const incarnation = (await store.incarnation())?.id ?? "";
    await store.reportAgent(region, { report: agent.report(region, incarnation, clock.nowMs()), atMs });
  }
}

function describe<K extends KindName>(kind: K, { state, version }: StateMessage<K>): Message {
  const { idOf, keyOf } = kindOf(kind);
  if (state.case === "apply") return { version, id: idOf(state.value), key: keyOf(state.value) };
  return { version, id: "", key: state.case === "delete" ? keyOf(state.value) : "" };
}
