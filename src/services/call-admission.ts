// Who may have the body of a call read. Connect's interceptors run when the message of a unary call is
// already buffered and decoded, so that anybody who reaches the port could make krane do that work. An
// admission is an interceptor that the port also asks with nothing but the headers in hand; see
// rpc-routes.ts. Within a process, where there is no port, it works as the interceptor that it is.
import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ConnectError,
  type ContextValues,
  createContextKey,
  type Interceptor,
} from "@connectrpc/connect";

/** A call of which the headers are known, and nothing else. */
export interface IncomingCall {
  readonly method: DescMethod;
  readonly header: Headers;
  /** The IP address of the caller; empty within a process. */
  readonly peer: string;
  /** Carries what was found out on to the service. */
  readonly values: ContextValues;
  readonly signal: AbortSignal;
}

/** Throws the ConnectError that the caller gets, or lets the call in. */
export type Admit = (call: IncomingCall) => void | Promise<void>;

/** The IP address that a call came from, for services that judge it; empty within a process. */
export const peerAddress = createContextKey("", { description: "address of the caller" });

const admittedBy = createContextKey<readonly Admit[]>([], { description: "who let the call in already" });

/** What goes to the client in place of an error. */
export type AnswerTo = (error: unknown, call: Pick<IncomingCall, "method" | "signal">) => unknown;

/** What an interceptor may do for calls that never come as far as the interceptors. */
export interface PortDuties {
  readonly admit?: Admit;
  readonly answerTo?: AnswerTo;
  /** Told of every refusal, for those who count. */
  readonly onRefused?: (call: IncomingCall, error: ConnectError) => void;
}

export type PortInterceptor = Interceptor & PortDuties;

export function withPortDuties(interceptor: Interceptor, duties: PortDuties): PortInterceptor {
  return Object.assign(interceptor, duties);
}

/** Asks once per call: at the port, or where the call came past none. */
export function createAdmission(admit: Admit): Interceptor {
  const interceptor: Interceptor = (next) => async (request) => {
    const { method, header, contextValues: values, signal } = request;
    if (!values.get(admittedBy).includes(admit))
      await admit({ method, header, peer: values.get(peerAddress), values, signal });
    return next(request);
  };
  return withPortDuties(interceptor, { admit });
}

/** Asks every admission among the interceptors, in their order. */
export async function admitCall(interceptors: readonly PortInterceptor[], call: IncomingCall): Promise<void> {
  for (const { admit } of interceptors) {
    if (admit === undefined) continue;
    await admit(call);
    call.values.set(admittedBy, [...call.values.get(admittedBy), admit]);
  }
}
