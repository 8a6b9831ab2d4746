// Reads the logs of a deployment's pods for one request: of all that there are, and when following, of those that come.
import type { Pod } from "kubernetes-types/core/v1.js";
import { linkSignals } from "../../concurrency/abort.ts";
import { type Clock, sleep } from "../../concurrency/clock.ts";
import { type LogRequest, LogEnd_Reason as Reason } from "../../gen/ctrl/v1/logs_pb.ts";
import { isForbidden, KubeApiError } from "../../kube/errors.ts";
import { pods } from "../../kube/resources.ts";
import { labelKeys } from "../../model/labels.ts";
import { scrub } from "../../telemetry/scrub.ts";
import type { End } from "./entry-sender.ts";
import { findProofFlaw, type ProofDeps } from "./pod-proof.ts";
import { forbidden, PodTail, type TailDeps } from "./pod-tail.ts";

export interface DeploymentLogDeps extends ProofDeps, Omit<TailDeps, "api"> {
  readonly clock: Clock;
}

const lookEveryMs = 2_000;
const listedMax = 500;
// Each holds a connection to the API server.
const tailsMax = 50;
const reasonCharsMax = 300;
const notesMax = 100;
// Anybody who may create pods can label them; each costs a request to find that out.
const provedAgainMs = 10_000;
const labelValue = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Resolves with why nothing more comes; rejects only when the signal aborts, or for a bug. */
export async function readDeploymentLog(
  request: LogRequest,
  deps: DeploymentLogDeps,
  signal: AbortSignal,
): Promise<End> {
  if (!labelValue.test(request.deploymentId))
    return { reason: Reason.NOT_FOUND, message: "no such deployment" };
  const inner = linkSignals(signal);
  const reading = new DeploymentLog(request, deps, (reason) => inner.abort(reason));
  try {
    return await reading.run(inner.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (reading.end === undefined) throw error;
    return reading.end;
  } finally {
    inner.abort(new Error("the request has ended"));
    await reading.settled();
  }
}

class DeploymentLog {
  /** Set when a pod's log ends the whole request. */
  end: End | undefined;
  /** Why the log of a pod was not read. The others are read nevertheless. */
  private flaw: End | undefined;
  private readonly request: LogRequest;
  private readonly deps: DeploymentLogDeps;
  private readonly stop: (reason: unknown) => void;
  private readonly seen = new Set<string>();
  private readonly tails = new Set<Promise<void>>();
  private readonly noted = new Set<string>();
  /** When a pod that was not proven may be looked at again, by uid. */
  private readonly unproven = new Map<string, number>();

  constructor(request: LogRequest, deps: DeploymentLogDeps, stop: (reason: unknown) => void) {
    this.request = request;
    this.deps = deps;
    this.stop = stop;
  }

  async run(signal: AbortSignal): Promise<End> {
    const { podName, follow, deploymentId } = this.request;
    for (let isFirst = true; ; isFirst = false) {
      const failure = await this.look(isFirst, signal);
      if (this.end !== undefined) return this.end;
      if (isFirst && failure !== undefined) return failure;
      if (isFirst && this.seen.size === 0 && podName !== "")
        return { reason: Reason.NOT_FOUND, message: `no pod ${podName} of deployment ${deploymentId}` };
      if (isFirst && this.seen.size === 0 && !follow)
        return { reason: Reason.NOT_FOUND, message: `deployment ${deploymentId} has no pods` };
      if (isFirst && this.seen.size === 0) await this.note("", "waiting for the first pod", signal);
      if (!follow) break;
      // A pod that was named never comes back under the same name.
      if (podName !== "" && this.tails.size === 0) break;
      await sleep(this.deps.clock, lookEveryMs, signal);
    }
    await Promise.all(this.tails);
    signal.throwIfAborted();
    return this.end ?? this.flaw ?? {};
  }

  /** Resolves when nothing runs. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.tails);
  }

  /** Starts to read pods that were not seen before. Returns why the pods are not known. */
  private async look(isFirst: boolean, signal: AbortSignal): Promise<End | undefined> {
    let found: readonly Pod[];
    try {
      found = await this.list(signal);
      const uids = new Set(found.map(({ metadata }) => metadata?.uid ?? ""));
      for (const uid of this.unproven.keys()) if (!uids.has(uid)) this.unproven.delete(uid);
      for (const pod of found) await this.start(pod, isFirst, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KubeApiError)) throw error;
      if (isForbidden(error)) return forbidden;
      return { reason: Reason.FAILED, message: `Kubernetes: ${scrub(error.message, reasonCharsMax)}` };
    }
  }

  private async list(signal: AbortSignal): Promise<readonly Pod[]> {
    const { k8sNamespace: namespace, deploymentId, podName } = this.request;
    const labelSelector = `${labelKeys.deploymentId}=${deploymentId}`;
    const page = await this.deps.api.list(pods, { namespace, labelSelector, limit: listedMax }, signal);
    return page.items.filter(({ metadata }) => podName === "" || metadata?.name === podName);
  }

  private async start(pod: Pod, isFirst: boolean, signal: AbortSignal): Promise<void> {
    const { name = "", namespace = "", uid = "" } = pod.metadata ?? {};
    const nowMs = this.deps.clock.nowMs();
    if (this.seen.has(uid) || nowMs < (this.unproven.get(uid) ?? 0)) return;
    if (this.tails.size >= tailsMax)
      return this.note("", `only ${tailsMax} pods are read at a time; name one to read it`, signal);
    const flaw = await findProofFlaw(pod, this.request, this.deps, signal);
    if (flaw !== undefined) {
      this.unproven.set(uid, nowMs + provedAgainMs);
      return this.refuse(name, flaw, signal);
    }
    this.unproven.delete(uid);
    this.seen.add(uid);
    const tail = new PodTail({ name, namespace, uid, isNew: !isFirst }, this.request, this.deps);
    const running: Promise<void> = tail
      .run(signal)
      .then((end) => (end?.reason === Reason.FAILED ? this.noteFlaw(end, signal) : this.finish(end)))
      .finally(() => this.tails.delete(running));
    // Awaited at the end; until then a failure must not count as unhandled.
    running.catch((error: unknown) => this.stop(error));
    this.tails.add(running);
  }

  /** It may pass later: the control plane or the watch may be a little behind. */
  private async refuse(name: string, flaw: string, signal: AbortSignal): Promise<void> {
    const text = `not read, because it is not proven to be of this deployment: ${flaw}`;
    if (this.request.podName === "") return this.note(name, text, signal);
    this.end = { reason: Reason.NOT_OURS, message: `pod ${name} is ${text}` };
  }

  /** The last one ends the request, those before are notes: so each is told once. */
  private async noteFlaw(flaw: End, signal: AbortSignal): Promise<void> {
    const { message } = this.flaw ?? {};
    this.flaw = flaw;
    if (message !== undefined) await this.note("", message, signal);
  }

  private finish(end: End | undefined): void {
    if (end === undefined) return;
    this.end ??= end;
    this.stop(new Error("the log of a pod ended the request"));
  }

  private async note(podName: string, text: string, signal: AbortSignal): Promise<void> {
    if (this.noted.size >= notesMax || this.noted.has(`${podName} ${text}`)) return;
    this.noted.add(`${podName} ${text}`);
    await this.deps.add({ podName, timeNs: 0n, text, cutBytes: 0, isNote: true }, signal);
  }
}
