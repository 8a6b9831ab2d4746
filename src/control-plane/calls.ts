// One call to the control plane, unary or streaming, whichever RPC it is: with its
// deadline, its end, its figures and its one kind of error.
//
// - A unary call ends with its deadline, also when the server hangs.
// - A stream is cancelled at the server in every way that reading it can end. One left
//   open costs a polling loop over there, and in the end the connection's last stream.
// - An abort by the caller is the signal's own reason, never a ControlPlaneError: nobody
//   must mistake "we stopped" for "the control plane failed".
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

export interface CallOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly unaryTimeoutMs: number;
  redact(text: string): string;
  /** Told of the end of every call that was not ended by its caller. */
  onEnd(end: CallEnd): void;
}

export interface CallEnd {
  readonly method: string;
  /** How long a unary call took; how long a stream lives says nothing about anybody's speed. */
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
  /** Begins when the reading begins. */
  stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodServerStreaming<I, O>,
    request: MessageInitShape<I>,
    signal: AbortSignal,
  ): AsyncIterable<MessageShape<O>>;
  /** Ends every call, and refuses new ones. */
  close(): void;
}

export function createCalls(options: CallOptions): Calls {
  const { transport, clock, unaryTimeoutMs } = options;
  const closing = new AbortController();
  // The server gets to know the deadline, and can give up on its side. The limit that
  // counts is ours: the library's own would run on a clock that no test can move.
  const unaryHeader = { "Connect-Timeout-Ms": String(unaryTimeoutMs) };

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
        const response = await transport.stream(method, linked.signal, undefined, undefined, input);
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
