// Calls that only the leader of a region can do. A standby forwards them: behind a Service a client may be pinned to one
// replica. A forwarded call is never forwarded again.
import type { DescMessage, DescMethodUnary, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";

/** Marks a forwarded call. Nothing is trusted because of it: the leader authenticates the caller as usual. */
export const forwardedHeader = "krane-forwarded-to";

/** Sends the call to the leader, with the token of the caller, and returns its response. Rejects with a ConnectError. */
export type ForwardCall = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageShape<I>,
  context: HandlerContext,
) => Promise<MessageShape<O>>;

export interface LeaderCallDeps {
  /** Why this agent cannot change anything; undefined if it leads. Absent: it always leads. */
  standby?(): string | undefined;
  /** Absent: calls that reach a standby fail. */
  readonly forward?: ForwardCall | undefined;
}

/** The implementation of a method: `act` on the leader, and on a standby a forwarded call. */
export function onLeader<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  act: (
    request: MessageShape<I>,
    context: HandlerContext,
  ) => MessageInitShape<O> | Promise<MessageInitShape<O>>,
  { standby, forward }: LeaderCallDeps,
): (request: MessageShape<I>, context: HandlerContext) => Promise<MessageInitShape<O>> {
  return async (request, context) => {
    const reason = standby?.();
    if (reason === undefined) return act(request, context);
    if (forward === undefined || context.requestHeader.has(forwardedHeader))
      throw new ConnectError(`not done: ${reason}`, Code.Unavailable);
    // A message is also a valid initializer of itself, which the types do not say.
    return (await forward(method, request, context)) as MessageInitShape<O>;
  };
}
