// Unary calls of the Connect protocol. A resync makes thousands of them once a minute, and with the library's
// own transport each leaves 75 KB of garbage: abort controllers, headers that are converted there and back, and
// errors that nobody sees. Here a call that goes well is one request and one message.
//
// Whatever is not a plain good answer is judged by the library's own rules, so that codes, hints and limits are
// the same as those of its transport; a test compares the two.
import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ConnectError,
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
import { type AnswerHeaders, connectionError, exchange } from "./http-exchange.ts";
import type { Sessions } from "./sessions.ts";

export interface UnaryCallsOptions {
  /** Without a trailing slash. */
  readonly baseUrl: string;
  readonly sessions: Sessions;
  readonly interceptors: readonly Interceptor[];
  readonly messageBytesMax: number;
}

type AnyCall = ReturnType<Interceptor>;
type Serialization = MethodSerializationLookup<DescMessage, DescMessage>;

interface Verdict {
  readonly headers: AnswerHeaders;
  readonly compression?: Compression | undefined;
  /** By the status alone; the body says more. */
  readonly refusal?: ConnectError | undefined;
}

const accepted = [compressionGzip];
const isBinary = true;

/** The deadline of a call is its signal's: the library's own runs on a clock that no test can move. */
export function createUnary(options: UnaryCallsOptions): Transport["unary"] {
  const { baseUrl, sessions, messageBytesMax } = options;
  const basePath = new URL(baseUrl).pathname.replace(/\/$/, "");
  const limits = { readMaxBytes: messageBytesMax, writeMaxBytes: messageBytesMax };
  // As many as there are RPCs.
  const serializations = new Map<DescMethodUnary, Serialization>();

  function serializationOf(method: DescMethodUnary): Serialization {
    const known = serializations.get(method);
    if (known !== undefined) return known;
    const made = createMethodSerializationLookup(method, undefined, undefined, limits);
    serializations.set(method, made);
    return made;
  }

  const send: AnyCall = async (request) => {
    if (request.stream) throw new TypeError(`${request.method.name} is a stream`);
    const { method, service, signal } = request;
    const serialization = serializationOf(method);
    const body = serialization.getI(isBinary).serialize(request.message);
    const path = `${basePath}/${service.typeName}/${method.name}`;
    const stream = await openStream(sessions, path, request.header);
    const { verdict, bytes } = await exchange(stream, { body, bytesMax: messageBytesMax, judge }, signal);
    sessions.notifyResponseByteRead(stream);
    const message = serialization.getO(isBinary).parse(await unpacked(verdict, bytes, messageBytesMax));
    return {
      stream: false,
      service,
      method,
      message,
      get header() {
        return trailerDemux(webHeaders(verdict.headers))[0];
      },
      get trailer() {
        return trailerDemux(webHeaders(verdict.headers))[1];
      },
    };
  };

  const call = options.interceptors.reduceRight((next, interceptor) => interceptor(next), send);
  return async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    _timeoutMs: number | undefined,
    header: Parameters<Transport["unary"]>[3],
    message: MessageInitShape<I>,
  ) => {
    const response = await call({
      stream: false,
      service: method.parent,
      method,
      requestMethod: "POST",
      url: `${baseUrl}/${method.parent.typeName}/${method.name}`,
      header: requestHeaderWithCompression("unary", isBinary, undefined, header, accepted, null, true),
      contextValues: createContextValues(),
      message: create(method.input, message),
      signal: signal ?? new AbortController().signal,
    });
    // Interceptors know that there is an answer, and not of which method.
    return response as UnaryResponse<I, O>;
  };
}

async function openStream(sessions: Sessions, path: string, header: Headers) {
  try {
    return await sessions.request("POST", path, Object.fromEntries(header));
  } catch (error) {
    throw connectionError(error);
  }
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
