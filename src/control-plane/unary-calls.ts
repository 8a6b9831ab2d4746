// Unary calls of the Connect protocol. A resync makes thousands of them once a minute, and the library's own transport
// leaves 75 KB of garbage per call: abort controllers, headers converted back and forth, and unused errors. Here a
// successful call is one request and one message.
//
// Anything but a plain success is handled by the library's own functions, so that codes, hints and limits are the same
// as in its transport; a test compares the two.
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  type ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type Transport,
  type UnaryResponse,
} from "@connectrpc/connect";
import {
  type Compression,
  createMethodSerializationLookup,
  type MethodSerializationLookup,
} from "@connectrpc/connect/protocol";
import {
  contentTypeUnaryProto,
  errorFromJsonBytes,
  requestHeaderWithCompression,
  trailerDemux,
  validateResponseWithCompression,
} from "@connectrpc/connect/protocol-connect";
import { compressionGzip } from "@connectrpc/connect-node";
import { callHeadersOf } from "./call-headers.ts";
import { type AnswerHeaders, connectionError, exchange } from "./http-exchange.ts";
import { incarnationHeader } from "./incarnation.ts";
import type { RequestStamp } from "./request-stamp.ts";
import { fingerprintOf } from "./response-fingerprint.ts";
import type { ServerHistory } from "./server-history.ts";
import type { Sessions } from "./sessions.ts";
import { decode } from "./wire-types.ts";

export interface UnaryCallsOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly sessions: Pick<Sessions, "request" | "notifyResponseByteRead">;
  readonly interceptors: readonly Interceptor[];
  readonly stamp?: RequestStamp | undefined;
  readonly history?: ServerHistory | undefined;
  readonly messageBytesMax: number;
}

type AnyCall = ReturnType<Interceptor>;
/** Headers as a caller passes them. */
type CallHeader = Parameters<Transport["unary"]>[3];

/** What all calls of a method share. */
interface MethodParts {
  readonly path: string;
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
  /** The fields of the stamp, encoded. Appending them to a message merges the two, by the rules of protobuf. */
  readonly stampBytes: Uint8Array;
  /** Returned instead of a response with the known fingerprint. */
  readonly empty: Message;
}

interface UnaryRequest {
  readonly method: DescMethodUnary;
  readonly message: Message;
  readonly headers: Readonly<Record<string, string>>;
  readonly contextValues: ContextValues | undefined;
  readonly signal: AbortSignal;
}

interface Verdict {
  readonly headers: AnswerHeaders;
  readonly compression?: Compression | undefined;
  /** From the status alone; the body has the details. */
  readonly refusal?: ConnectError | undefined;
}

const accepted = [compressionGzip];
const isBinary = true;

/** The signal carries the deadline of a call: the library's own deadline does not use the injected clock. */
export function createUnary(options: UnaryCallsOptions): Transport["unary"] {
  const { baseUrl, sessions, stamp, history, interceptors, messageBytesMax } = options;
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, "");
  const limits = { readMaxBytes: messageBytesMax, writeMaxBytes: messageBytesMax };
  // Bounded by the number of RPCs.
  const methods = new Map<DescMethodUnary, MethodParts>();

  function partsOf(method: DescMethodUnary): MethodParts {
    const known = methods.get(method);
    if (known !== undefined) return known;
    const made = {
      path: `${basePath}/${method.parent.typeName}/${method.name}`,
      serialization: createMethodSerializationLookup(method, undefined, undefined, limits),
      stampBytes: toBinary(method.input, create(method.input, stamp?.fields(method.input))),
      empty: create(method.output),
    };
    methods.set(method, made);
    return made;
  }

  async function send({ method, message, headers, contextValues, signal }: UnaryRequest) {
    const { path, serialization, stampBytes, empty } = partsOf(method);
    const bytesMax = messageBytesMax;
    const body = joined(serialization.getI(isBinary).serialize(message), stampBytes);
    const all = { ...headers, ...callHeadersOf(contextValues), ...(await stamp?.headers(signal)) };
    const stream = await sessions.request("POST", path, all).catch(rethrowConnectionError);
    const { verdict, bytes } = await exchange(stream, { body, bytesMax, judge }, signal);
    sessions.notifyResponseByteRead(stream);
    const incarnation = verdict.headers[incarnationHeader]?.toString();
    // A proxy's error names no incarnation, which says nothing about the control plane.
    if (incarnation !== undefined || verdict.refusal === undefined) history?.take(incarnation, "response");
    const isPlain = verdict.compression === undefined && verdict.refusal === undefined;
    const content = isPlain ? bytes : await unpacked(verdict, bytes, bytesMax);
    const fingerprint = contextValues && fingerprintOf(contextValues);
    fingerprint?.take(content);
    const answer = fingerprint?.isKnown ? empty : decode(method.output, content);
    return new PlainAnswer(method, answer, verdict.headers);
  }

  const call = interceptors.reduceRight<AnyCall>(
    (next, interceptor) => interceptor(next),
    (request) => {
      if (request.stream) throw new TypeError(`${request.method.name} is a stream`);
      return send({ ...request, headers: Object.fromEntries(request.header) });
    },
  );
  let last: { readonly header: CallHeader; readonly plain: Record<string, string> } | undefined;

  /** Converts the headers of a call. Calls pass the same object each time, so the last result is cached. */
  function plainHeaders(header: CallHeader): Record<string, string> {
    if (last === undefined || last.header !== header)
      last = { header, plain: Object.fromEntries(headersOf(header)) };
    return last.plain;
  }

  return async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    _timeoutMs: number | undefined,
    header: CallHeader,
    init: MessageInitShape<I>,
    contextValues?: ContextValues,
  ) => {
    const message = create(method.input, init);
    const common = { method, message, signal: signal ?? new AbortController().signal };
    const answer =
      interceptors.length === 0
        ? send({ ...common, headers: plainHeaders(header), contextValues })
        : call({
            ...common,
            stream: false,
            service: method.parent,
            requestMethod: "POST",
            url: `${baseUrl}/${method.parent.typeName}/${method.name}`,
            header: headersOf(header),
            contextValues: contextValues ?? createContextValues(),
          });
    // Only here is it known that the message belongs to this method.
    return (await answer) as UnaryResponse<I, O>;
  };
}

class PlainAnswer implements UnaryResponse {
  readonly stream = false;
  readonly method: DescMethodUnary;
  readonly message: Message;
  private readonly fields: AnswerHeaders;

  constructor(method: DescMethodUnary, message: Message, fields: AnswerHeaders) {
    this.method = method;
    this.message = message;
    this.fields = fields;
  }

  get service() {
    return this.method.parent;
  }

  get header(): Headers {
    return trailerDemux(webHeaders(this.fields))[0];
  }

  get trailer(): Headers {
    return trailerDemux(webHeaders(this.fields))[1];
  }
}

function headersOf(header: CallHeader): Headers {
  return requestHeaderWithCompression("unary", isBinary, undefined, header, accepted, null, true);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.byteLength + second.byteLength);
  bytes.set(first);
  bytes.set(second, first.byteLength);
  return bytes;
}

function rethrowConnectionError(error: unknown): never {
  throw connectionError(error);
}

function judge(headers: AnswerHeaders): Verdict {
  const status = headers[":status"] ?? 0;
  const isPlain =
    headers["content-type"] === contentTypeUnaryProto && headers["content-encoding"] === undefined;
  if (status === 200 && isPlain) return { headers };
  const { compression, unaryError } = validateResponseWithCompression(
    "unary",
    accepted,
    isBinary,
    status,
    webHeaders(headers),
  );
  return { headers, compression, refusal: unaryError };
}

async function unpacked({ headers, compression, refusal }: Verdict, bytes: Uint8Array, bytesMax: number) {
  const body = compression === undefined ? bytes : await compression.decompress(bytes, bytesMax);
  if (refusal === undefined) return body;
  const [metadata, trailer] = trailerDemux(webHeaders(headers));
  trailer.forEach((value, name) => void metadata.append(name, value));
  throw errorFromJsonBytes(body, metadata, refusal);
}

function webHeaders(headers: AnswerHeaders): Headers {
  const fields = Object.entries(headers).flatMap(([name, value]): [string, string][] => {
    if (name.startsWith(":") || value === undefined) return [];
    return [value].flat().map((each) => [name, String(each)]);
  });
  return new Headers(fields);
}
