// What a caller of SchedulerService hears of an order.
//
// - ok: it is carried out. invalid_argument: it was not taken, and changed nothing.
// - Every other answer speaks of an order that was taken and stays: failed_precondition and already_exists
//   need somebody to do something first, unavailable and deadline_exceeded only need time.
import { Code, ConnectError } from "@connectrpc/connect";
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { OrderOutcome } from "../engine/running-controller.ts";

/** For callers that set no deadline, or one that is hours away. */
const orderWaitMs = 60_000;

export type OrderVerb = "apply" | "delete";

/** Resolves once the order is carried out; rejects with what the caller is to hear. */
export async function carriedOut(
  verb: OrderVerb,
  give: (signal: AbortSignal) => Promise<OrderOutcome>,
  deps: { readonly clock: Clock; readonly ending: AbortSignal },
  signal: AbortSignal,
): Promise<void> {
  let outcome: OrderOutcome;
  try {
    outcome = await withTimeout(deps.clock, orderWaitMs, signal, give);
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof DeadlineError)
      throw new ConnectError("not carried out yet; the order stays", Code.DeadlineExceeded);
    if (deps.ending.aborted) throw new ConnectError("krane is stopping", Code.Unavailable);
    throw error;
  }
  const refusal = refusalOf(verb, outcome);
  if (refusal !== undefined) throw refusal;
}

export function refusalOf(verb: OrderVerb, order: OrderOutcome): ConnectError | undefined {
  const { outcome, reason } = order;
  if (order.isInvalid) return new ConnectError(reason, Code.InvalidArgument);
  switch (outcome) {
    case "applied":
    case "unchanged":
    case "deleted":
      return undefined;
    case "parked":
      return new ConnectError(`refused by Kubernetes, the order stays: ${reason}`, Code.FailedPrecondition);
    case "conflict":
      return new ConnectError(reason, verb === "apply" ? Code.AlreadyExists : Code.FailedPrecondition);
    case "blocked":
      return new ConnectError(reason, Code.FailedPrecondition);
    case "pending":
    case "retrying":
      return new ConnectError(`not carried out yet, the order stays: ${reason}`, Code.Unavailable);
  }
}
