// Numbers the reports of an agent, so that the control plane can drop one that arrives after a newer one about the same
// object: from a leader that was replaced, or a retry that overtook the first attempt.
//
// Leaders are ordered by term, and the reports of one process by number. Without leases every term is 0, and the reports
// of two processes are in no order.

export interface ReportOrder {
  /** The leader's term; 0 without leases. */
  readonly term: bigint;
  /** The process, different after every start. */
  readonly instance: string;
  /** Grows with every report of the process. */
  readonly number: bigint;
}

export const reportOrderHeader = "x-krane-report-order";

const format = /^(\d{1,18})\/([\w.-]{1,100})\/(\d{1,18})$/;

export function formatReportOrder({ term, instance, number }: ReportOrder): string {
  return `${term}/${instance}/${number}`;
}

/** Undefined if it is missing or unreadable. */
export function parseReportOrder(text: string | null | undefined): ReportOrder | undefined {
  const [, term, instance, number] = format.exec(text ?? "") ?? [];
  if (term === undefined || instance === undefined || number === undefined) return undefined;
  return { term: BigInt(term), instance, number: BigInt(number) };
}

export interface ReportingOptions {
  /** The name of this process. */
  readonly instance: string;
}

/** Returns the order of the next report, each time it is called. Without options, reports are not ordered. */
export function createReportOrders(
  options: (ReportingOptions & { term(): bigint }) | undefined,
  startedMs: number,
): () => ReportOrder | undefined {
  if (options === undefined) return () => undefined;
  // The name of a process may be configured, and then stays the same after a restart.
  const name = options.instance.replaceAll(/[^\w.-]/g, "_").slice(0, 80);
  const instance = `${name}.${Math.trunc(startedMs).toString(36)}`;
  let number = 0n;
  return () => {
    number += 1n;
    return { term: options.term(), instance, number };
  };
}
