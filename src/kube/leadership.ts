// Who may write to the cluster, and when. An agent writes only during its own terms (K13). The terms come from a Lease
// (see lease-election.ts); an agent without leases has one term that lasts as long as its process.
import { onAbort } from "../concurrency/abort-listener.ts";

/** A time during which this process, and no other, writes. */
export interface Term {
  /** Grows with every change of the leader; 0 without a lease. */
  readonly number: number;
  /** Aborts when the term ends. */
  readonly signal: AbortSignal;
}

export interface Leadership {
  /** Undefined while this process is a standby. */
  readonly term: Term | undefined;
  /** Resolves with the current term, or with the next one. */
  whenLeading(signal: AbortSignal): Promise<Term>;
}

class TermEndedError extends Error {
  override readonly name = "TermEndedError";
}

/** Starts and ends terms, and wakes up those who wait for one. */
export class Terms implements Leadership {
  private current: (Term & { readonly ending: AbortController }) | undefined;
  private readonly waiting = new Set<(term: Term) => void>();

  get term(): Term | undefined {
    return this.current;
  }

  begin(number: number): Term {
    this.end("a new term begins");
    const ending = new AbortController();
    const term = { number, ending, signal: ending.signal };
    this.current = term;
    for (const wake of [...this.waiting]) wake(term);
    return term;
  }

  /** Does nothing between terms. */
  end(reason: string): void {
    const term = this.current;
    this.current = undefined;
    term?.ending.abort(new TermEndedError(reason));
  }

  whenLeading(signal: AbortSignal): Promise<Term> {
    const { current } = this;
    if (current !== undefined) return Promise.resolve(current);
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const wake = (term: Term) => {
        stop();
        resolve(term);
      };
      const stopListening = onAbort(signal, () => {
        stop();
        reject(signal.reason);
      });
      const stop = () => {
        stopListening();
        this.waiting.delete(wake);
      };
      this.waiting.add(wake);
    });
  }
}

/** For one process that is alone by assumption. */
export function createSoleLeadership(): Leadership {
  const terms = new Terms();
  terms.begin(0);
  return terms;
}
