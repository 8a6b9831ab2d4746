// krane logs: prints the logs of pods. Lines go to standard output, and what happens to pods and streams to standard error.
// A stream that is cut is opened again, and goes on behind the last line of each pod.
import { Code, ConnectError } from "@connectrpc/connect";
import { type Clock, createSystemClock, sleep, utcText } from "../../concurrency/clock.ts";
import type { LogEntry } from "../../gen/ctrl/v1/logs_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { endless } from "../admin/admin-client.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { isPassing, isTaken, reconnectMs } from "../terminal/followed-output.ts";
import { findLogTarget, type LogTarget } from "./log-target.ts";
import { safeLine } from "./log-text.ts";

export interface LogOptions {
  readonly follow?: true;
  readonly previous?: true;
  readonly tail?: number;
  readonly since?: number;
  readonly container?: string;
  readonly timestamps?: true;
}

// Those of the pods that printed last; the others start at the time of the cut.
const positionsMax = 200;
const nanosPerMs = 1_000_000n;
const nanosPerSecond = 1_000_000_000n;
const waitMaxMs = 60_000;

export async function readLogs(
  admin: Admin,
  io: Io,
  named: { readonly first: string; readonly second: string | undefined },
  options: LogOptions,
): Promise<number> {
  const target = await findLogTarget(admin, named.first, named.second);
  return new LogPrinter(admin, io, target, options).run();
}

class LogPrinter {
  private readonly admin: Admin;
  private readonly io: Io;
  private readonly what: LogTarget;
  private readonly options: LogOptions;
  private readonly clock: Clock = createSystemClock();
  /** The pods that printed something, with the time of their last line; the last one printed last. */
  private readonly positions = new Map<string, bigint>();
  private isCut = false;
  private cutAtMs = 0;

  constructor(admin: Admin, io: Io, what: LogTarget, options: LogOptions) {
    this.admin = admin;
    this.io = io;
    this.what = what;
    this.options = options;
  }

  async run(): Promise<number> {
    const { signal } = this.admin;
    for (let isFirst = true; ; isFirst = false) {
      try {
        if (!(await this.readOnce(isFirst))) return exitCodes.ok;
        if (this.options.follow) this.say("the log has ended");
        return exitCodes.ok;
      } catch (error) {
        signal.throwIfAborted();
        // The first connection must succeed, so that a mistake is reported.
        const isFatal = !this.options.follow || (isFirst && this.positions.size === 0);
        if (isFatal || !isRetried(error)) throw error;
        await this.noteCut(error);
      }
    }
  }

  /** Returns false once nobody reads the output any more. */
  private async readOnce(isFirst: boolean): Promise<boolean> {
    const { client, signal } = this.admin;
    const { stdout } = this.io;
    for await (const { entry, dropped } of client.streamLogs(this.request(isFirst), { signal, ...endless })) {
      if (this.isCut) this.say("reconnected");
      this.isCut = false;
      if (dropped > 0n)
        this.say(
          `${dropped} line${dropped === 1n ? "" : "s"} dropped here: they came faster than they were read`,
        );
      if (entry !== undefined) this.print(entry);
      if (!(await isTaken(stdout, this.clock, signal))) return false;
    }
    return true;
  }

  private request(isFirst: boolean) {
    const { target, podName } = this.what;
    const { follow = false, previous = false, container = "", tail, since = 0 } = this.options;
    const common = { region: this.admin.region, target, podName, container, previous, follow };
    if (isFirst) return { ...common, sinceMs: BigInt(since), ...(tail !== undefined && { tailLines: tail }) };
    const positions = [...this.positions].slice(-positionsMax);
    const cutMs = Math.max(1_000, this.clock.nowMs() - this.cutAtMs);
    return {
      ...common,
      sinceMs: BigInt(Math.ceil(cutMs)),
      positions: positions.map(([pod, timeNs]) => ({ podName: pod, timeNs })),
    };
  }

  private print({ podName, timeNs, text, cutBytes, isNote }: LogEntry): void {
    if (isNote) {
      this.say(podName === "" ? printable(text) : `${printable(podName)}: ${printable(text)}`);
      return;
    }
    const known = this.positions.get(podName) ?? 0n;
    this.positions.delete(podName);
    this.positions.set(podName, timeNs > known ? timeNs : known);
    const { stdout } = this.io;
    const isOneOfSeveral = this.what.pods > 1 || this.positions.size > 1;
    const prefix = isOneOfSeveral ? this.admin.paint(`${printable(podName)} | `, "faint") : "";
    const time = this.options.timestamps && timeNs > 0n ? `${utcOf(timeNs)} ` : "";
    const cut = cutBytes > 0 ? ` … (${cutBytes} bytes cut)` : "";
    stdout.write(`${prefix}${time}${stdout.isTerminal ? safeLine(text) : text}${cut}\n`);
  }

  private async noteCut(error: unknown): Promise<void> {
    const reason = error instanceof ConnectError ? printable(error.rawMessage) : "the connection broke";
    if (!this.isCut) {
      this.cutAtMs = this.clock.nowMs();
      this.say(`the stream was cut: ${reason}; reconnecting`);
    }
    this.isCut = true;
    await sleep(this.clock, hintOf(error) ?? reconnectMs, this.admin.signal);
  }

  private say(text: string): void {
    this.io.stderr.write(`krane: ${text}\n`);
  }
}

/** A busy server says when to come back. */
function isRetried(error: unknown): boolean {
  return isPassing(error) || (error instanceof ConnectError && error.code === Code.ResourceExhausted);
}

function hintOf(error: unknown): number | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  const seconds = Number.parseInt(error.metadata.get("retry-after") ?? "", 10);
  return Number.isNaN(seconds) ? undefined : Math.min(waitMaxMs, seconds * 1_000);
}

function utcOf(timeNs: bigint): string {
  const seconds = utcText(Number(timeNs / nanosPerMs)).slice(0, -1);
  return `${seconds}.${String(timeNs % nanosPerSecond).padStart(9, "0")}Z`;
}
