// Takes part in the election of the region's leader, with credentials and connections of its own (K6). It starts before
// the controllers and stops after them, so that the lease is given up only when nothing is written any more.
import { createHash } from "node:crypto";
import { withTimeout } from "../concurrency/abort.ts";
import { sleep } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import type { Config } from "../config/config.ts";
import { isNotFound } from "../engine/classify.ts";
import { createNamespace } from "../engine/seal-keys.ts";
import type { KubeApi } from "../kube/api.ts";
import { createKubeApi } from "../kube/client.ts";
import type { WriteFence } from "../kube/fenced-transport.ts";
import { createSoleLeadership, type Leadership, type Term, Terms } from "../kube/leadership.ts";
import { LeaseElection, type LeaseStatus } from "../kube/lease-election.ts";
import { components, fieldManager, ownLabels } from "../model/labels.ts";
import type { LifecycleStep } from "../runtime/lifecycle.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AgentDeps } from "./agent-deps.ts";
import { connectKube, loadClusterAccess } from "./cluster-access.ts";
import { startAgentLoop } from "./controllers.ts";
import { announcement } from "./leader-announcement.ts";
import { regionOf } from "./seal-step.ts";

export interface LeasePart extends Leadership {
  readonly step: LifecycleStep;
  readonly fence: WriteFence;
  /** Of this process, as its Lease has it. Undefined if the setting is off. */
  readonly identity: string | undefined;
  /** Undefined if the setting is off. */
  status(): LeaseStatus | undefined;
}

export function createLeasePart(config: Config, metrics: Metrics, agentDeps: AgentDeps): LeasePart {
  return config.lease === "off" ? withoutLease(agentDeps) : new ElectedPart(config, metrics, agentDeps);
}

function withoutLease({ log }: AgentDeps): LeasePart {
  const sole = createSoleLeadership();
  return {
    get term() {
      return sole.term;
    },
    whenLeading: (signal) => sole.whenLeading(signal),
    fence: { leftMs: () => Number.POSITIVE_INFINITY },
    identity: undefined,
    status: () => undefined,
    step: {
      name: "lease",
      async start() {
        log.info("no lease is used: this agent assumes that it is the only one of its region");
        return undefined;
      },
    },
  };
}

// Longer than any write may take, so that a stop never waits longer.
const unknownMaxMs = 8_000;
const firstAttemptMs = 5_000;

class ElectedPart implements LeasePart {
  readonly fence: WriteFence;
  readonly step: LifecycleStep;
  readonly identity: string;
  private readonly config: Config;
  private readonly deps: AgentDeps & { readonly metrics: Metrics };
  private election: LeaseElection | undefined;
  /** Before the step has run, nobody leads. */
  private readonly before = new Terms();
  private unknownUntilMs = 0;
  private hasWarned = false;

  constructor(config: Config, metrics: Metrics, agentDeps: AgentDeps) {
    this.config = config;
    // Two processes with the same configured id must not take each other's lease for their own.
    this.identity = `${config.instanceId}_${uniqueSuffix(agentDeps.random)}`;
    this.deps = { ...agentDeps, metrics };
    const { clock } = agentDeps;
    this.fence = {
      leftMs: () => this.election?.leftMs() ?? 0,
      onUnknown: (forMs) => {
        this.unknownUntilMs = Math.max(this.unknownUntilMs, clock.nowMs() + forMs);
      },
    };
    this.step = { name: "lease", start: (signal) => this.start(signal) };
  }

  get term(): Term | undefined {
    return this.current.term;
  }

  whenLeading(signal: AbortSignal): Promise<Term> {
    return this.current.whenLeading(signal);
  }

  status(): LeaseStatus | undefined {
    return this.election?.status();
  }

  private get current(): Leadership {
    return this.election ?? this.before;
  }

  private async start(signal: AbortSignal) {
    const { config, deps } = this;
    const { endpoint, stateNamespace: namespace } = await loadClusterAccess(config, deps, signal);
    const userAgent = `krane/${deps.build.version}`;
    const transport = connectKube({ endpoint, connections: 2, userAgent }, deps);
    const election = this.createElection(namespace, createKubeApi(transport));
    this.election = election;
    const loop = startAgentLoop("lease", (running) => election.run(running), deps);
    // So that an agent that has started knows whether it leads. If the API server does not respond, it is a standby.
    await withTimeout(deps.clock, firstAttemptMs, signal, () => election.tried).catch(() => undefined);
    return {
      stop: async (hurry: AbortSignal) => {
        try {
          await loop.stop(hurry);
          await this.release(election, hurry);
        } finally {
          election.abandon();
          await transport.close();
        }
      },
    };
  }

  private createElection(namespace: string, api: KubeApi): LeaseElection {
    const { config, deps } = this;
    const { clock, log, metrics } = deps;
    const mode = config.lease === "required" ? "required" : "auto";
    return new LeaseElection(
      {
        namespace,
        name: leaseName(regionOf(config)),
        identity: this.identity,
        mode,
        labels: ownLabels(components.lease),
        annotations: announcement(config, this.identity),
        fieldManager,
      },
      {
        ...deps,
        api: creatingNamespace(api, namespace),
        observer: {
          onTerm: (term) => {
            metrics.leader.set({}, 1);
            metrics.leaseTransitions.inc({ change: "won" });
            if (term > 0) log.info("this agent leads its region", { term });
            else
              log.warn(
                "no lease is used, because Kubernetes forbids it: nothing keeps a second agent of this region from writing",
                {
                  remedy:
                    "grant the right to get, create and patch Leases in krane's namespace; `krane doctor` checks it",
                },
              );
          },
          onLoss: (reason) => {
            metrics.leader.set({}, 0);
            metrics.leaseTransitions.inc({ change: "lost" });
            log.warn("this agent no longer leads its region; it writes nothing", { reason });
          },
          onRenewed: () => metrics.leaseRenewed.set({}, Math.round(clock.wallMs() / 1_000)),
          onFailure: (error) => this.onFailure(error),
        },
      },
    );
  }

  private onFailure(error: unknown): void {
    const { log } = this.deps;
    // A right that is missing is told once. Conflicts are part of an election.
    const isLoud = !this.hasWarned && this.config.lease === "required";
    if (isLoud) log.warn("cannot use the lease; without it nothing is written", { error });
    else log.debug("a request for the lease failed; retrying", { error });
    this.hasWarned = true;
  }

  /** Waits until no write of this process can take effect any more. */
  private async release(election: LeaseElection, hurry: AbortSignal): Promise<void> {
    const { clock, log } = this.deps;
    if (election.term === undefined || election.status().role !== "leader") return;
    try {
      const waitMs = Math.min(this.unknownUntilMs - clock.nowMs(), unknownMaxMs);
      if (waitMs > 0) await sleep(clock, waitMs, hurry);
      await election.release(hurry);
      log.info("the lease was given up");
    } catch (error) {
      log.warn("the lease could not be given up; it expires in 15 s", { error });
    }
  }
}

/** Eight hex digits. */
function uniqueSuffix(random: Random): string {
  return Math.floor(random.next() * 2 ** 32)
    .toString(16)
    .padStart(8, "0");
}

/** The namespace may be missing where krane does not run in a pod. */
function creatingNamespace(api: KubeApi, namespace: string): KubeApi {
  return {
    ...api,
    async create(kind, object, options, signal) {
      try {
        return await api.create(kind, object, options, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        await createNamespace(namespace, api, signal);
        return await api.create(kind, object, options, signal);
      }
    },
  };
}

const subdomain = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/;
const nameCharsMax = 200;

/** A region may have characters that a name must not have. Then a hash keeps two of them apart. The chart has the same rule. */
export function leaseName(region: string): string {
  if (subdomain.test(region) && region.length <= nameCharsMax) return `krane-${region}`;
  return `krane-${createHash("sha256").update(region).digest("hex").slice(0, 16)}`;
}
