// Reads the log of one pod to its end; when following, over every restart of its container and every cut of the stream.
//
// - Kubernetes selects a log by name only. So the pod is looked at again once its log is open: a log counts only if the pod
//   with the proven uid is there at that time.
// - A stream that is opened again starts at the second of the last line, and lines that were read before are left out.
import type { Pod } from "kubernetes-types/core/v1.js";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import { type LogRequest, LogEnd_Reason as Reason } from "../../gen/ctrl/v1/logs_pb.ts";
import type { KubeApi } from "../../kube/api.ts";
import { isForbidden, KubeApiError } from "../../kube/errors.ts";
import { openPodLog, type PodLogOptions } from "../../kube/pod-log.ts";
import { pods } from "../../kube/resources.ts";
import type { ByteTransport } from "../../kube/transport.ts";
import { scrub } from "../../telemetry/scrub.ts";
import type { Entry } from "./entry-queue.ts";
import type { End } from "./entry-sender.ts";
import { LogLines, type ReadLine } from "./log-lines.ts";

export interface TailDeps {
  readonly clock: Clock;
  readonly api: KubeApi;
  readonly transport: ByteTransport;
  add(entry: Entry, signal: AbortSignal): Promise<void>;
}

export interface TailedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** It came while others were followed, so its log is read from the beginning. */
  readonly isNew: boolean;
}

const againMs = 1_000;
const reasonCharsMax = 300;
const nanosPerMs = 1_000_000n;

export const forbidden: End = {
  reason: Reason.FORBIDDEN,
  message:
    "the agent's service account may not get pods/log in this cluster; set agent.logs.enabled=true in the chart, which grants it",
};

export class PodTail {
  private readonly pod: TailedPod;
  private readonly request: LogRequest;
  private readonly deps: TailDeps;
  private readonly startedMs: number;
  private lastNs: bigint | undefined;
  private lastNote = "";
  private isReopened = false;

  constructor(pod: TailedPod, request: LogRequest, deps: TailDeps) {
    this.pod = pod;
    this.request = request;
    this.deps = deps;
    this.startedMs = deps.clock.nowMs();
    this.lastNs = request.positions.find(({ podName }) => podName === pod.name)?.timeNs;
  }

  /** The end of the whole request if it cannot go on because of this pod, or with FAILED, why the log was not read to its end. */
  async run(signal: AbortSignal): Promise<End | undefined> {
    for (;;) {
      const end = await this.readOnce(signal);
      if (end !== undefined || !this.request.follow) return end;
      if (await this.isOver(signal)) {
        await this.note("the pod has ended", signal);
        return undefined;
      }
      this.isReopened = true;
      await sleep(this.deps.clock, againMs, signal);
    }
  }

  private async readOnce(signal: AbortSignal): Promise<End | undefined> {
    try {
      const log = await openPodLog(this.deps.transport, this.pod, this.options(), signal);
      if ((await this.readLines(log, signal)) || this.request.follow) return undefined;
      return await this.failed("the pod is gone", signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KubeApiError)) throw error;
      if (isForbidden(error)) return forbidden;
      return await this.failed(scrub(error.message, reasonCharsMax), signal);
    }
  }

  /** A log that is followed is opened again. */
  private async failed(reason: string, signal: AbortSignal): Promise<End | undefined> {
    const text = `the log cannot be read: ${reason}`;
    if (!this.request.follow) return { reason: Reason.FAILED, message: `pod ${this.pod.name}: ${text}` };
    await this.note(text, signal);
    return undefined;
  }

  private options(): PodLogOptions {
    const { container, previous, follow, tailLines, sinceMs } = this.request;
    const common = { previous, follow, ...(container !== "" && { container }) };
    if (this.lastNs !== undefined) return { ...common, sinceTimeMs: Number(this.lastNs / nanosPerMs) };
    // Nothing was read so far: only what has come since then.
    if (this.isReopened && !this.pod.isNew) {
      const elapsedMs = this.deps.clock.nowMs() - this.startedMs;
      return { ...common, sinceSeconds: Math.ceil(elapsedMs / 1_000) + 1 };
    }
    if (this.pod.isNew) return common;
    return {
      ...common,
      ...(tailLines !== undefined && { tailLines }),
      ...(sinceMs > 0n && { sinceSeconds: Math.max(1, Math.ceil(Number(sinceMs) / 1_000)) }),
    };
  }

  /** Returns false if it is the log of another pod. */
  private async readLines(log: AsyncIterable<Buffer>, signal: AbortSignal): Promise<boolean> {
    const lines = new LogLines();
    const knownNs = this.lastNs ?? -1n;
    let isProven = false;
    for await (const chunk of log) {
      if (!isProven && !(await this.isThere(signal))) return false;
      isProven = true;
      for (const line of lines.push(chunk)) await this.add(line, knownNs, signal);
    }
    const rest = lines.rest();
    if (rest !== undefined) await this.add(rest, knownNs, signal);
    return true;
  }

  private async add(
    { timeNs, text, cutBytes }: ReadLine,
    knownNs: bigint,
    signal: AbortSignal,
  ): Promise<void> {
    if (timeNs !== 0n && timeNs <= knownNs) return;
    if (timeNs !== 0n) this.lastNs = timeNs;
    const entry = { podName: this.pod.name, timeNs, text, cutBytes, isNote: false };
    await this.deps.add(entry, signal);
  }

  /** The same note once in a row. */
  private async note(text: string, signal: AbortSignal): Promise<void> {
    if (text === this.lastNote) return;
    this.lastNote = text;
    await this.deps.add({ podName: this.pod.name, timeNs: 0n, text, cutBytes: 0, isNote: true }, signal);
  }

  private async isThere(signal: AbortSignal): Promise<boolean> {
    return (await this.load(signal))?.metadata?.uid === this.pod.uid;
  }

  private async isOver(signal: AbortSignal): Promise<boolean> {
    try {
      const now = await this.load(signal);
      if (now?.metadata?.uid !== this.pod.uid) return true;
      return now.status?.phase === "Succeeded" || now.status?.phase === "Failed";
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof KubeApiError) return false;
      throw error;
    }
  }

  private load(signal: AbortSignal): Promise<Pod | undefined> {
    const { namespace, name } = this.pod;
    return this.deps.api.get(pods, { namespace, name }, {}, signal);
  }
}
