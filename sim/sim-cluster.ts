// The Kubernetes cluster of a world: the embedded API server with its controllers and nodes. Every request that it executes
// goes into the audit trail, with what it changed. Oracles judge by that trail.
import {
  type ApiHandler,
  type ApiRequest,
  type ApiResponse,
  type ApiServer,
  administrator,
  createApiServer,
  createHandler,
  type RunningControllers,
  type ServerRequest,
  startControllers,
  type WholeResponse,
} from "@krane/kube-apiserver";
import { type Clock, sleep } from "../src/concurrency/clock.ts";
import { ciliumDefinition } from "../src/dev/cilium-definition.ts";
import { createFixture } from "../src/dev/cluster-fixture.ts";
import type { Choices } from "./choices.ts";
import { type Rule, refused } from "./cluster-rules.ts";

/** An object as the server stores it. */
export type LiveObject = Readonly<Record<string, unknown>> & { readonly metadata: LiveMetadata };

export interface LiveMetadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly deletionTimestamp?: string;
  readonly creationTimestamp?: string;
  readonly ownerReferences?: readonly {
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
  }[];
}

export interface AuditedChange {
  readonly plural: string;
  readonly namespace: string;
  readonly name: string;
  readonly before: LiveObject | undefined;
  /** Undefined if it was removed. */
  readonly after: LiveObject | undefined;
}

export interface AuditRecord {
  readonly atMs: number;
  /** Who sent it: "agent a.1", "people", "cluster". */
  readonly actor: string;
  readonly request: ServerRequest;
  readonly status: number;
  readonly changes: readonly AuditedChange[];
}

/** What the API server does to requests. */
export interface ApiWeather {
  /** The share of requests that fail with a 429 or a 5xx, without effect. */
  refusals: number;
  /** The share of writes that have their effect and are answered with a 504. */
  lateFailures: number;
  /** Every request fails so. */
  isDown: boolean;
}

const refusals = [
  { status: 429, reason: "TooManyRequests", retryAfterSeconds: 1 },
  { status: 500, reason: "InternalError" },
  { status: 503, reason: "ServiceUnavailable" },
  { status: 504, reason: "Timeout" },
] as const;

const never = new AbortController().signal;

export interface SimClusterDeps {
  readonly clock: Clock;
  readonly choices: Choices;
  /** Called after each request that changed something, or tried to. */
  onAudit(record: AuditRecord): void;
  /** Sees every object that changes, whoever changed it. */
  onChange(change: AuditedChange, actor: string): void;
}

export class SimCluster {
  readonly server: ApiServer;
  readonly weather: ApiWeather = { refusals: 0, lateFailures: 0, isDown: false };
  readonly rules = new Set<Rule>();
  private readonly deps: SimClusterDeps;
  private controllers: RunningControllers | undefined;
  private readonly stopping = new AbortController();
  private actor = "cluster";
  private changes: AuditedChange[] = [];

  constructor(deps: SimClusterDeps) {
    this.deps = deps;
    const { clock, choices } = deps;
    this.server = createApiServer({ clock, random: choices });
    this.server.store.subscribe(({ key, object, previous, removed }) => {
      const change: AuditedChange = {
        plural: key.plural,
        namespace: key.namespace,
        name: key.name,
        before: previous as LiveObject | undefined,
        after: removed ? undefined : (object as unknown as LiveObject),
      };
      this.changes.push(change);
      deps.onChange(change, this.actor);
    });
  }

  /** Nodes, the runtime class and Cilium, as an operator has set them up before krane comes. */
  async start(): Promise<void> {
    const { clock, choices } = this.deps;
    const cluster = this.handlerOf("cluster", "kube-controller-manager");
    const body = ciliumDefinition;
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await cluster({ method: "POST", path, contentType: "application/json", body }, never);
    await createFixture(cluster, never);
    this.controllers = startControllers(cluster, {}, { clock, random: choices }, this.stopping.signal);
  }

  get running(): RunningControllers {
    if (this.controllers === undefined) throw new Error("the cluster has not started");
    return this.controllers;
  }

  stop(): void {
    this.stopping.abort();
    this.server.stop();
  }

  list(plural: string, group = ""): readonly LiveObject[] {
    return this.server.store.list({ group, plural }) as unknown as readonly LiveObject[];
  }

  get(plural: string, group: string, namespace: string, name: string): LiveObject | undefined {
    return this.server.store.get({ group, plural, namespace, name }) as unknown as LiveObject | undefined;
  }

  /** The API server for one client. What disturbs agents does not disturb people and the cluster's own parts. */
  handlerOf(actor: string, userAgent: string): ApiHandler {
    const isDisturbed = actor.startsWith("agent");
    const server = {
      ...this.server,
      handle: (request: ServerRequest) => this.execute(actor, request, isDisturbed),
    };
    const handler = createHandler(server, { userAgent });
    return async (request, signal) => {
      const delayMs = this.ruleFor(actor, { ...request, user: administrator })?.afterMs ?? 0;
      if (delayMs > 0) await sleep(this.deps.clock, delayMs, signal);
      return handler(request, signal);
    };
  }

  private ruleFor(actor: string, request: ServerRequest): Rule | undefined {
    for (const rule of this.rules) if (rule.matches(actor, request)) return rule;
    return undefined;
  }

  /** A request of a person, with kubectl's rights. */
  async kubectl(request: ApiRequest): Promise<WholeResponse> {
    const response = await this.handlerOf("people", "kubectl")(request, never);
    if (response.kind === "whole") return response;
    response.close();
    throw new Error("a person does not watch");
  }

  private execute(actor: string, request: ServerRequest, isDisturbed: boolean): ApiResponse {
    if (isDisturbed && (this.weather.isDown || this.deps.choices.chance(this.weather.refusals))) {
      const refusal = this.deps.choices.one(refusals);
      return this.audited(actor, request, refused(refusal), []);
    }
    const rule = this.ruleFor(actor, request);
    if (rule?.refusal !== undefined) return this.audited(actor, request, refused(rule.refusal), []);
    const changed = rule?.change && { ...request, body: rule.change(request.body) };
    const outer = this.actor;
    this.actor = actor;
    this.changes = [];
    try {
      const response = this.server.handle(changed ?? request);
      const isLate =
        isDisturbed && request.method !== "GET" && this.deps.choices.chance(this.weather.lateFailures);
      const shown = isLate && response.kind === "whole" ? refused(refusals[3]) : response;
      return this.audited(actor, request, shown, this.changes);
    } finally {
      this.actor = outer;
      this.changes = [];
    }
  }

  private audited(
    actor: string,
    request: ServerRequest,
    response: ApiResponse,
    changes: readonly AuditedChange[],
  ): ApiResponse {
    const status = response.kind === "whole" ? response.status : 200;
    this.deps.onAudit({ atMs: this.deps.clock.nowMs(), actor, request, status, changes });
    return response;
  }
}
