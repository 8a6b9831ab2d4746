// The lines of a log that the page keeps, and how their text is shown. Pure.
import type { StreamLogsResponse } from "../../gen/krane/admin/v1/admin_pb.ts";
import { counted } from "./words.ts";

/** A line of a program, or something about the log itself. */
export interface LogLine {
  /** Grows from line to line. */
  readonly number: number;
  readonly podName: string;
  /** 0 if it is not known. */
  readonly timeMs: number;
  readonly text: string;
  readonly isNote: boolean;
}

export type NewLine = Omit<LogLine, "number">;

export interface LogTexts {
  readonly lines: readonly LogLine[];
  /** How many older ones the page has not kept. */
  readonly gone: number;
}

export const noLines: LogTexts = { lines: [], gone: 0 };

export const linesMax = 2_000;
/** Lines of the greatest length would take too much memory. */
const charsMax = 2_000_000;

/** With more lines; the oldest make room. */
export function withLines({ lines, gone }: LogTexts, more: readonly LogLine[]): LogTexts {
  const all = [...lines, ...more];
  let chars = 0;
  let first = all.length;
  while (first > 0 && all.length - first < linesMax) {
    chars += all[first - 1]?.text.length ?? 0;
    if (chars > charsMax) break;
    first -= 1;
  }
  return { lines: all.slice(first), gone: gone + first };
}

/** What a message of the stream shows. */
export function linesOfMessage({ entry, dropped }: StreamLogsResponse): NewLine[] {
  const shown: NewLine[] = [];
  if (dropped > 0n)
    shown.push(
      noteLine(`${counted(Number(dropped), "line")} dropped here: they came faster than they were read`),
    );
  if (entry === undefined) return shown;
  const { podName, timeNs, text, cutBytes, isNote } = entry;
  const cut = cutBytes > 0 ? ` … (${counted(cutBytes, "byte")} cut)` : "";
  const timeMs = Number(timeNs / 1_000_000n);
  shown.push({ podName: visibleText(podName), timeMs, text: `${visibleText(text)}${cut}`, isNote });
  return shown;
}

export function noteLine(text: string): NewLine {
  return { podName: "", timeMs: 0, text, isNote: true };
}

const colour = new RegExp(`${String.fromCharCode(0x1b)}\\[[0-9;]{0,40}m`, "g");

/**
 * What a program prints could hide text, or turn its direction and with it what the reader sees. Colours are left out; every other
 * character of control or formatting is shown as one that cannot be mistaken for text.
 */
export function visibleText(text: string): string {
  return text.replaceAll(colour, "").replaceAll(/(?!\t)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\ufffd");
}
