// Makes unary and streaming calls to the control plane, with deadlines, metrics and one type of error.
//
// - A unary call ends with its deadline, even if the server hangs.
// - A stream is cancelled at the server however reading it ends. A stream left open would cost the server a polling
//   loop, and eventually use up the connection's streams.
// - If the caller aborts, the call rejects with the signal's reason, never with a ControlPlaneError, so that a stop is
//   not mistaken for a failure of the control plane.
import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import type { ContextValues, Transport } from "@connectrpc/connect";
import { linkSignals, withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import { ControlPlaneError, controlPlaneError } from "./error.ts";

/**
 * The largest message that the agent accepts. A server that reads it sends `too_large` instead of a larger state, which
 * would block the stream.
 */
export const messageBytesHeader = "X-Krane-Message-Bytes-Max";

export interface CallOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly unaryTimeoutMs: number;
  /** The largest message that the transport reads. */
  readonly messageBytesMax: number;
  redact(text: string): string;
  /** Called at the end of every call that its caller did not abort. */
  onEnd(end: CallEnd): void;
}

export interface CallEnd {
  readonly method: string;
  /** Only for unary calls: the lifetime of a stream says nothing about speed. */
  readonly durationMs?: number;
  readonly error?: ControlPlaneError;
}

export interface Calls {
  unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
    context?: ContextValues,
  ): Promise<MessageShape<O>>;
  /** Opened when it is first read. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ): AsyncIterable<MessageShape<O>>;
  /** Ends every call; new ones fail. */
  close(): void;
}

export function createCalls(options: CallOptions): Calls {
  const { transport, clock, unaryTimeoutMs, messageBytesMax } = options;
  const closing = new AbortController();
  // Tells the server the deadline, so that it can stop working. The deadline itself is enforced here, because the
  // library's does not use the injected clock.
  const limitHeader = { [messageBytesHeader]: String(messageBytesMax) };
  const unaryHeader = { "Connect-Timeout-Ms": String(unaryTimeoutMs), ...limitHeader };

  function failed(method: string, error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    if (closing.signal.aborted) return closing.signal.reason;
    return controlPlaneError(method, error, options.redact);
  }

  function end(method: string, durationMs: number | undefined, error?: unknown): void {
    if (error !== undefined && !(error instanceof ControlPlaneError)) return;
    options.onEnd({
      method,
      ...(durationMs === undefined ? {} : { durationMs }),
      ...(error === undefined ? {} : { error }),
    });
  }

  return {
    async unary(method, request, signal, context) {
      const startedMs = clock.nowMs();
      try {
        const response = await withTimeout(clock, unaryTimeoutMs, [signal, closing.signal], (limited) =>
          transport.unary(method, limited, undefined, unaryHeader, request, context),
        );
        end(method.name, clock.nowMs() - startedMs);
        return response.message;
      } catch (cause) {
        const error = failed(method.name, cause, signal);
        end(method.name, clock.nowMs() - startedMs, error);
        throw error;
      }
    },
    async *stream(method, request, signal) {
      const linked = linkSignals(signal, closing.signal);
      try {
        const input = once(create(method.input, request));
        const response = await transport.stream(method, linked.signal, undefined, limitHeader, input);
        yield* response.message;
        end(method.name, undefined);
      } catch (cause) {
        const error = failed(method.name, cause, signal);
        end(method.name, undefined, error);
        throw error;
      } finally {
        linked.abort();
      }
    },
    close: () => closing.abort(new ControlPlaneError("canceled", "the connection was closed")),
  };
}

async function* once<T>(value: T): AsyncIterable<T> {
  yield value;
}
