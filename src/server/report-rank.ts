// Decides whether a report is older than the last one about the same object, and is to be dropped.
//
// - A report of an older incarnation of the control plane, or of an earlier leader's term, is older. But only for a while:
//   terms start again when the Lease of an agent is deleted, and its reports must not be dropped for ever.
// - Of two reports of the same process, the one with the lower number is older. An equal number is the same report.
// - Reports of agents that do not number them, or of two processes in the same term, are in no order: the last one counts.
import { incarnationHeader, parseIncarnation } from "../control-plane/incarnation.ts";
import { parseReportOrder, type ReportOrder, reportOrderHeader } from "../control-plane/report-order.ts";

export interface ReportRank extends ReportOrder {
  /** The ordinal of the incarnation that the agent knew; 0 for none. */
  readonly incarnation: bigint;
}

/** A report is late by minutes at most: the agent gives up after seconds, and networks do not keep it much longer. */
export const lateMaxMs = 900_000;

export function readReportRank(headers: Headers): ReportRank | undefined {
  const order = parseReportOrder(headers.get(reportOrderHeader));
  const incarnation = parseIncarnation(headers.get(incarnationHeader))?.ordinal ?? 0n;
  return order && { ...order, incarnation };
}

/** A report on the object of this name. */
export interface ReceivedReport<R> {
  readonly name: string;
  /** Empty if the agent sends only the name. */
  readonly id: string;
  readonly report: R;
  /** A report that is older than the last one is dropped, which counts as a success. */
  readonly rank?: ReportRank | undefined;
}

export interface RankedAt {
  readonly rank: ReportRank | undefined;
  readonly atMs: number;
}

export function isOlderReport(report: RankedAt, last: RankedAt): boolean {
  if (report.rank === undefined || last.rank === undefined) return false;
  const isLate = report.atMs - last.atMs < lateMaxMs;
  const [one, other] = [report.rank, last.rank];
  if (one.instance === other.instance && one.term === other.term) return one.number <= other.number;
  const areNamed = one.incarnation !== 0n && other.incarnation !== 0n;
  if (areNamed && one.incarnation !== other.incarnation) return isLate && one.incarnation < other.incarnation;
  return isLate && one.term < other.term;
}

/** For the database. */
export function formatRank({ incarnation, term, instance, number }: ReportRank): string {
  return `${incarnation} ${term}/${instance}/${number}`;
}

export function parseRank(text: string | null): ReportRank | undefined {
  const [incarnation = "", order] = (text ?? "").split(" ");
  const parsed = parseReportOrder(order);
  return parsed && /^\d{1,18}$/.test(incarnation)
    ? { ...parsed, incarnation: BigInt(incarnation) }
    : undefined;
}
