// Decides whether the body of a call is read: the memory budget must have room for it, and every admission among the
// service's interceptors must pass.
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { admitCall, type IncomingCall, type PortInterceptor } from "./call-admission.ts";
import { CallBudget, type CallCharge } from "./call-budget.ts";

export class CallGate {
  private readonly interceptors: readonly PortInterceptor[];
  private readonly budget: CallBudget;

  constructor(options: { readonly interceptors: readonly Interceptor[]; readonly messageBytesMax: number }) {
    this.interceptors = options.interceptors;
    this.budget = new CallBudget(options.messageBytesMax);
  }

  /** Returns the charge of an admitted call, which the caller must release when it ends, or the error for the client. */
  async pass(call: IncomingCall): Promise<CallCharge | ConnectError> {
    try {
      return await this.admit(call);
    } catch (error) {
      const mapped = this.mapError(error, call);
      if (!(mapped instanceof ConnectError)) throw mapped;
      for (const { onRefused } of this.interceptors) onRefused?.(call, mapped);
      return mapped;
    }
  }

  private async admit(call: IncomingCall): Promise<CallCharge> {
    const charge = this.budget.begin(call.peer);
    try {
      await admitCall(this.interceptors, call);
      charge.raiseTo(announcedBytes(call.header));
      return charge;
    } catch (error) {
      charge.release();
      throw error;
    }
  }

  /** Maps the error as if it passed through the interceptors, innermost first. */
  private mapError(error: unknown, call: IncomingCall): unknown {
    return this.interceptors.reduceRight((mapped, each) => each.mapError?.(mapped, call) ?? mapped, error);
  }
}

/**
 * The size that the message may have in memory, judged by the headers. Connect allocates the announced size in advance,
 * and a compressed message may expand to any size.
 */
function announcedBytes(header: Headers): number {
  const encodings = ["content-encoding", "connect-content-encoding", "grpc-encoding"];
  const isCompressed = encodings.some((name) => (header.get(name) ?? "identity") !== "identity");
  if (isCompressed) return Number.POSITIVE_INFINITY;
  const announced = Number(header.get("content-length") ?? 0);
  return Number.isNaN(announced) ? 0 : announced;
}
