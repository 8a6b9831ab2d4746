// Decides from the headers alone whether the body of a call is read. Connect's interceptors run only after the message
// of a unary call is buffered and decoded, so that anyone who can reach the port could make krane do that work. An
// admission is an interceptor that the port also runs before it reads the body; see rpc-routes.ts. Within a process,
// where there is no port, it works as an ordinary interceptor.
import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ConnectError,
  type ContextValues,
  createContextKey,
  type Interceptor,
} from "@connectrpc/connect";

/** A call of which only the headers have been read. */
export interface IncomingCall {
  readonly method: DescMethod;
  readonly header: Headers;
  /** The IP address of the caller; empty within a process. */
  readonly peer: string;
  /** Passes results of the admission on to the service. */
  readonly values: ContextValues;
  readonly signal: AbortSignal;
}

/** Admits the call, or throws the ConnectError that the caller gets. */
export type Admit = (call: IncomingCall) => void | Promise<void>;

/** The IP address of the caller, for services; empty within a process. */
export const peerAddress = createContextKey("", { description: "address of the caller" });

const admittedBy = createContextKey<readonly Admit[]>([], { description: "admissions that have passed" });

/** Converts an error to the one that the client gets. */
export type MapError = (error: unknown, call: Pick<IncomingCall, "method" | "signal">) => unknown;

/** What an interceptor does for calls that are rejected at the port, before the interceptors run. */
export interface PortHooks {
  readonly admit?: Admit;
  readonly mapError?: MapError;
  /** Called for every rejected call, for example to count it. */
  readonly onRefused?: (call: IncomingCall, error: ConnectError) => void;
}

export type PortInterceptor = Interceptor & PortHooks;

export function withPortHooks(interceptor: Interceptor, hooks: PortHooks): PortInterceptor {
  return Object.assign(interceptor, hooks);
}

/** Runs `admit` once per call: at the port, or in the interceptor when the call did not pass a port. */
export function createAdmission(admit: Admit): Interceptor {
  const interceptor: Interceptor = (next) => async (request) => {
    const { method, header, contextValues: values, signal } = request;
    if (!values.get(admittedBy).includes(admit))
      await admit({ method, header, peer: values.get(peerAddress), values, signal });
    return next(request);
  };
  return withPortHooks(interceptor, { admit });
}

/** Runs every admission among the interceptors, in order. */
export async function admitCall(interceptors: readonly PortInterceptor[], call: IncomingCall): Promise<void> {
  for (const { admit } of interceptors) {
    if (admit === undefined) continue;
    await admit(call);
    call.values.set(admittedBy, [...call.values.get(admittedBy), admit]);
  }
}
