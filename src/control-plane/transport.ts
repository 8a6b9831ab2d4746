// The transport to a control plane: the Connect protocol over one HTTP/2 connection, h2c for http:// and TLS for
// https://, never HTTP/1.1. The size of every message is limited, also after decompression, and checked before memory
// is allocated. So is the time that a message of a stream may take to arrive.
import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type Empty, EmptySchema } from "@bufbuild/protobuf/wkt";
import type { Interceptor, Transport } from "@connectrpc/connect";
import type { UniversalClientFn } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { compressionGzip, createNodeHttpClient } from "@connectrpc/connect-node";
import type { Clock } from "../concurrency/clock.ts";
import type { TrustedCa } from "../config/ca-file.ts";
import { isTooLarge, replaceLargeMessages } from "./large-messages.ts";
import { type ProgressOptions, requireProgress } from "./message-progress.ts";
import { createStampInterceptor, type RequestStamp } from "./request-stamp.ts";
import { createHistoryInterceptor, type ServerHistory } from "./server-history.ts";
import { createSessions, type Sessions } from "./sessions.ts";
import { createUnary } from "./unary-calls.ts";
import { decode } from "./wire-types.ts";

export interface ConnectionLimits {
  /** How long connecting may take. Default 10 s. */
  readonly connectTimeoutMs: number;
  /** A ping is sent after this long without a frame. Default 10 s. */
  readonly pingIntervalMs: number;
  /** The connection is dead after this long without a response to a ping. Default 5 s. */
  readonly pingTimeoutMs: number;
  /** The largest message in either direction. Default 8 MiB: five times what the API server accepts for one object. */
  readonly messageBytesMax: number;
  /** How long a message of a stream may take from its first byte to its last. Default 60 s. */
  readonly messageTimeoutMs: number;
}

export const defaultLimits: ConnectionLimits = {
  connectTimeoutMs: 10_000,
  pingIntervalMs: 10_000,
  pingTimeoutMs: 5_000,
  messageBytesMax: 8 * 1024 * 1024,
  messageTimeoutMs: 60_000,
};

export interface HttpLinkOptions {
  readonly baseUrl: string;
  /** PEM certificates to trust instead of the system's; for https:// only. */
  readonly ca?: TrustedCa | undefined;
  readonly limits?: Partial<ConnectionLimits>;
  readonly interceptors?: readonly Interceptor[] | undefined;
  /** Added to every request, after the interceptors. */
  readonly stamp?: RequestStamp | undefined;
  /** Checks every response before it is used. */
  readonly history?: ServerHistory | undefined;
}

/** What carries the calls: a connection, or in tests and simulations a server in the same process. */
export interface Link {
  readonly transport: Transport;
  /** Counts connections: after a change, the connection may go to another server. */
  readonly generation: number;
  close(): Promise<void>;
}

/** Connects on the first call. */
export function createHttpLink(options: HttpLinkOptions, clock: Clock): Link {
  const { interceptors = [], stamp, history } = options;
  const { messageBytesMax, messageTimeoutMs, ...limits } = { ...defaultLimits, ...options.limits };
  const url = new URL(options.baseUrl);
  const sessions = createSessions({ url, ca: options.ca, ...limits }, clock);
  const large = { bytesMax: messageBytesMax, areReplaced: false };
  const streams = createTransport({
    httpClient: createStreamClient(sessions, { clock, messageTimeoutMs }, large),
    baseUrl: options.baseUrl,
    useBinaryFormat: true,
    interceptors: [
      ...interceptors,
      ...(history === undefined ? [] : [createHistoryInterceptor(history)]),
      ...(stamp === undefined ? [] : [createStampInterceptor(stamp)]),
    ],
    acceptCompression: [compressionGzip],
    sendCompression: null,
    compressMinBytes: 0,
    readMaxBytes: messageBytesMax,
    writeMaxBytes: messageBytesMax,
  });
  const { baseUrl } = options;
  const unary = createUnary({ baseUrl, sessions, interceptors, stamp, history, messageBytesMax });
  return {
    transport: { unary, stream: noticeLargeMessages(checkWireTypes(streams), large) },
    get generation() {
      return sessions.opened;
    },
    close: () => sessions.close(),
  };
}

interface LargeMessages {
  readonly bytesMax: number;
  /** From the first one on. */
  areReplaced: boolean;
}

/** The library's HTTP client on these connections, with a watch on the bytes that arrive. */
function createStreamClient(
  sessions: Sessions,
  progress: ProgressOptions,
  large: LargeMessages,
): UniversalClientFn {
  const request = createNodeHttpClient({ httpVersion: "2", sessionProvider: () => sessions });
  return async (call) => {
    const response = await request(call);
    const body = requireProgress(response.body, progress);
    return { ...response, body: large.areReplaced ? replaceLargeMessages(body, large.bytesMax) : body };
  };
}

/** The first message that is too large ends its stream; later streams go on behind it. */
function noticeLargeMessages(stream: Transport["stream"], large: LargeMessages): Transport["stream"] {
  async function* noticed<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
    try {
      yield* messages;
    } catch (error) {
      if (isTooLarge(error)) large.areReplaced = true;
      throw error;
    }
  }
  return async (...call) => {
    const response = await stream(...call);
    return { ...response, message: noticed(response.message) };
  };
}

/** In a message without fields, every field is unknown and keeps its bytes. So they can be checked before they are decoded. */
function checkWireTypes({ stream }: Transport): Transport["stream"] {
  async function* decoded<O extends DescMessage>(
    output: O,
    messages: AsyncIterable<Empty>,
  ): AsyncIterable<MessageShape<O>> {
    for await (const message of messages) yield decode(output, toBinary(EmptySchema, message));
  }
  return async (method, ...call) => {
    const response = await stream({ ...method, output: EmptySchema }, ...call);
    return { ...response, method, message: decoded(method.output, response.message) };
  };
}
