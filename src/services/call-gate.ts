// Decides whether the body of a call is read: there has to be room for it, and every admission among the
// service's interceptors has to let it in.
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

  /** The charge of a call that is let in, to be released with its end, or the error that the client gets. */
  async pass(call: IncomingCall): Promise<CallCharge | ConnectError> {
    try {
      return await this.admit(call);
    } catch (error) {
      const answer = this.answerTo(error, call);
      if (!(answer instanceof ConnectError)) throw answer;
      for (const { onRefused } of this.interceptors) onRefused?.(call, answer);
      return answer;
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

  /** As if it had gone out through the interceptors, the innermost first. */
  private answerTo(error: unknown, call: IncomingCall): unknown {
    return this.interceptors.reduceRight((answer, each) => each.answerTo?.(answer, call) ?? answer, error);
  }
}

/**
 * What the message may become in memory, as far as the headers tell. Connect sets aside what is announced
 * before it comes, and what is compressed may grow to any size.
 */
function announcedBytes(header: Headers): number {
  const encodings = ["content-encoding", "connect-content-encoding", "grpc-encoding"];
  const isCompressed = encodings.some((name) => (header.get(name) ?? "identity") !== "identity");
  if (isCompressed) return Number.POSITIVE_INFINITY;
  const announced = Number(header.get("content-length") ?? 0);
  return Number.isNaN(announced) ? 0 : announced;
}
