// Reads the logs of an app or a deployment while a view shows them. A stream that is cut is opened again and goes on behind the last
// line of each pod; a pause closes it, so that it takes none of the browser's few connections.
import { Code, ConnectError } from "@connectrpc/connect";
import { type Signal, signal } from "@preact/signals";
import type { StreamLogsResponse } from "../../gen/krane/admin/v1/admin_pb.ts";
import {
  type LogLine,
  type LogTexts,
  linesOfMessage,
  type NewLine,
  noLines,
  noteLine,
  withLines,
} from "./log-lines.ts";
import type { Model } from "./model.ts";

export interface LogTarget {
  readonly region: string;
  readonly target:
    | { readonly case: "appId"; readonly value: string }
    | { readonly case: "deploymentId"; readonly value: string };
}

export interface LogChoice {
  /** Empty for all. */
  readonly podName: string;
  /** Empty for the only one. */
  readonly container: string;
  /** Of the container that ran before the last restart; that log has an end. */
  readonly previous: boolean;
  readonly tailLines: number;
}

const firstChoice: LogChoice = { podName: "", container: "", previous: false, tailLines: 100 };

export type LogState =
  | { readonly kind: "closed" | "opening" | "following" | "paused" | "ended" }
  | { readonly kind: "cut" | "refused"; readonly reason: string };

/** Many lines a second cost one drawing per interval. */
const drawEveryMs = 150;
const retryMs = 2_000;
const retryMaxMs = 60_000;
const positionsMax = 200;
/** Trying again without a change by somebody does not help. */
const lasting: ReadonlySet<Code> = new Set([
  Code.PermissionDenied,
  Code.FailedPrecondition,
  Code.NotFound,
  Code.InvalidArgument,
  Code.Unimplemented,
]);

export class LogReading {
  readonly state: Signal<LogState> = signal({ kind: "closed" });
  readonly texts: Signal<LogTexts> = signal(noLines);
  readonly choice: Signal<LogChoice> = signal(firstChoice);
  private readonly model: Model;
  private readonly what: LogTarget;
  private waiting: LogLine[] = [];
  private lastNumber = 0;
  private isDrawing = false;
  /** The time of the last line of each pod; that of the pod that printed last is the last one. */
  private readonly positions = new Map<string, bigint>();
  private hasHeard = false;
  /** When the last stream from which something was heard ended, by this machine's clock. */
  private cutAtMs: number | undefined;
  private stream = new AbortController();

  constructor(model: Model, what: LogTarget) {
    this.model = model;
    this.what = what;
  }

  /** From the beginning, without what was read before. */
  open(change: Partial<LogChoice> = {}): void {
    this.close();
    this.choice.value = { ...this.choice.value, ...change };
    this.positions.clear();
    this.hasHeard = false;
    this.cutAtMs = undefined;
    this.waiting = [];
    this.texts.value = noLines;
    this.resume();
  }

  close(): void {
    this.stream.abort();
    this.state.value = { kind: "closed" };
  }

  pause(): void {
    this.stream.abort();
    this.noteCut();
    this.draw();
    this.state.value = { kind: "paused" };
  }

  /** Goes on behind the last line. */
  resume(): void {
    this.stream.abort();
    const stream = new AbortController();
    this.stream = stream;
    this.state.value = { kind: "opening" };
    void this.read(stream.signal);
  }

  private async read(signal: AbortSignal): Promise<void> {
    const { model } = this;
    try {
      for await (const message of model.api.streamLogs(this.request(), { signal })) {
        if (signal.aborted) return;
        this.hear(message);
      }
      if (!signal.aborted) this.end();
    } catch (error) {
      if (signal.aborted) return;
      const failure = ConnectError.from(error);
      if (failure.code === Code.Unauthenticated) model.fail(error);
      else this.fail(failure, signal);
    }
  }

  private request() {
    const { tailLines, ...choice } = this.choice.value;
    const common = { ...this.what, ...choice, follow: !choice.previous };
    if (this.cutAtMs === undefined) return { ...common, tailLines };
    const positions = [...this.positions].slice(-positionsMax);
    return {
      ...common,
      sinceMs: BigInt(Math.max(1_000, Math.ceil(this.model.browser.nowMs() - this.cutAtMs))),
      positions: positions.map(([podName, timeNs]) => ({ podName, timeNs })),
    };
  }

  private hear(message: StreamLogsResponse): void {
    if (this.state.value.kind !== "following") this.state.value = { kind: "following" };
    this.hasHeard = true;
    this.cutAtMs = undefined;
    const { entry } = message;
    if (entry !== undefined && !entry.isNote) {
      const known = this.positions.get(entry.podName) ?? 0n;
      this.positions.delete(entry.podName);
      this.positions.set(entry.podName, entry.timeNs > known ? entry.timeNs : known);
    }
    this.add(linesOfMessage(message));
  }

  private end(): void {
    this.add([noteLine("The log ends here.")]);
    this.draw();
    this.state.value = { kind: "ended" };
  }

  private fail({ code, rawMessage, metadata }: ConnectError, signal: AbortSignal): void {
    this.draw();
    const isOver = code === Code.DeadlineExceeded;
    // The first attempt must succeed, so that somebody sees what is wrong.
    if (lasting.has(code) || this.choice.value.previous || !(this.hasHeard || isOver)) {
      this.state.value = { kind: "refused", reason: rawMessage };
      return;
    }
    this.noteCut();
    // A stream that reached its maximum duration is simply opened again.
    if (!isOver) this.state.value = { kind: "cut", reason: rawMessage };
    const seconds = Number.parseInt(metadata.get("retry-after") ?? "", 10);
    const delayMs = Number.isNaN(seconds) ? retryMs : Math.min(retryMaxMs, seconds * 1_000);
    const cancel = this.model.browser.after(delayMs, () => void this.read(signal));
    signal.addEventListener("abort", cancel);
  }

  /** Nothing is missing after a stream that brought nothing. */
  private noteCut(): void {
    if (this.hasHeard) this.cutAtMs ??= this.model.browser.nowMs();
  }

  private add(lines: readonly NewLine[]): void {
    for (const line of lines) {
      this.lastNumber += 1;
      this.waiting.push({ ...line, number: this.lastNumber });
    }
    if (this.isDrawing || this.waiting.length === 0) return;
    this.isDrawing = true;
    this.model.browser.after(drawEveryMs, () => {
      this.isDrawing = false;
      this.draw();
    });
  }

  private draw(): void {
    if (this.waiting.length === 0) return;
    this.texts.value = withLines(this.texts.value, this.waiting);
    this.waiting = [];
  }
}
