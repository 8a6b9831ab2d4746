// Unary calls of the Connect protocol. A resync makes thousands of them once a minute, and with the library's
// own transport each leaves 75 KB of garbage: abort controllers, headers that are converted there and back, and
// errors that nobody sees. Here a call that goes well is one request and one message.
//
// Whatever is not a plain good answer is judged by the library's own rules, so that codes, hints and limits are
// the same as those of its transport; a test compares the two.
import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type Message,
  type MessageInitShape,
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
import { printOf } from "./answer-print.ts";
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

/** What every call of a method has in common. */
interface MethodParts {
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
  /** In the place of an answer that is recognised. */
  readonly empty: Message;
}

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
  const methods = new Map<DescMethodUnary, MethodParts>();

  function partsOf(method: DescMethodUnary): MethodParts {
    const known = methods.get(method);
    if (known !== undefined) return known;
    const serialization = createMethodSerializationLookup(method, undefined, undefined, limits);
    const made = { serialization, empty: create(method.output) };
    methods.set(method, made);
    return made;
  }

  const send: AnyCall = async (request) => {
    if (request.stream) throw new TypeError(`${request.method.name} is a stream`);
    const { method, service, signal, contextValues } = request;
    const { serialization, empty } = partsOf(method);
    const body = serialization.getI(isBinary).serialize(request.message);
    const path = `${basePath}/${service.typeName}/${method.name}`;
    const stream = await openStream(sessions, path, request.header);
    const { verdict, bytes } = await exchange(stream, { body, bytesMax: messageBytesMax, judge }, signal);
    sessions.notifyResponseByteRead(stream);
    const content = await unpacked(verdict, bytes, messageBytesMax);
    const print = printOf(contextValues);
    print?.take(content);
    const message = print?.isKnown ? empty : serialization.getO(isBinary).parse(content);
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
    contextValues?: ContextValues,
  ) => {
    const response = await call({
      stream: false,
      service: method.parent,
      method,
      requestMethod: "POST",
      url: `${baseUrl}/${method.parent.typeName}/${method.name}`,
      header: requestHeaderWithCompression("unary", isBinary, undefined, header, accepted, null, true),
      contextValues: contextValues ?? createContextValues(),
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
