// Plans the ingress policy of an environment. No message asks for this key: it derives from the deployments that are
// wanted or running in the environment.
import type { Clock } from "../../concurrency/clock.ts";
import { manifestContentHash } from "../../engine/applied-content.ts";
import type { DesiredStore } from "../../engine/desired-store.ts";
import { ownedObject, ownedTarget, type Plan, type PlanStep } from "../../engine/plan.ts";
import { type CacheEntry, objectKey } from "../../kube/object-cache.ts";
import { isClaimable, judgeIdentity, type Ownership } from "../../model/ownership.ts";
import {
  desiredIngressPolicy,
  ingressPolicyName,
  type PolicyEnvironment,
  type Ports,
} from "./ingress-policy.ts";
import type { ReplicaSetProjection } from "./projections.ts";
import type { DeploymentSpec } from "./spec.ts";
import {
  type EnvironmentRef,
  environmentName,
  environmentOfKey,
  type Policies,
  type PolicyProjection,
  policyKey,
  type ReplicaSets,
} from "./watched-kinds.ts";

export interface IngressPolicyDeps {
  readonly clock: Clock;
  readonly store: DesiredStore<DeploymentSpec>;
  readonly replicaSets: ReplicaSets;
  readonly policies: Policies;
  /** "required" holds workloads back while the cluster has no network policies. */
  readonly mode: "required" | "best-effort";
  /** Whether desired state has been read. */
  isInformed(): boolean;
  /** The namespace that krane runs in, if it fetches documents from deployments. */
  readonly scraperNamespace?: string | undefined;
}

type AwaitStep = Extract<PlanStep, { kind: "await" }>;

// An unused policy may belong to a deployment that the stream has not sent yet.
const unusedMs = 60_000;
// Many workloads that are created at once share a read of their policy.
const readForMs = 1_000;

export class IngressPolicies {
  private readonly deps: IngressPolicyDeps;
  private readonly unusedSinceMs = new Map<string, number>();
  /** Policies that are being deleted: they are still in the cache, but no workload may rely on them (K8). */
  private readonly going = new Set<string>();
  /** When policies were last read before a workload was created, by their keys. */
  private readonly readAtMs = new Map<string, number>();

  constructor(deps: IngressPolicyDeps) {
    this.deps = deps;
  }

  /** Called when a deployment of the environment was deleted on request: the policy need not wait if unused. */
  released(environment: EnvironmentRef): void {
    this.unusedSinceMs.set(policyKey(environment), Number.NEGATIVE_INFINITY);
  }

  /** A wanted ReplicaSet vanished. Somebody may have deleted its namespace with everything in it. */
  lost({ namespace }: Pick<EnvironmentRef, "namespace">): void {
    for (const key of this.readAtMs.keys())
      if (environmentOfKey(key)?.namespace === namespace) this.readAtMs.delete(key);
  }

  /**
   * What a workload must wait for. One that is new relies on a policy that was just read: the watch that shows it may
   * lag, and then the policy may be gone.
   */
  awaitSteps(spec: DeploymentSpec, { isNew } = { isNew: false }): readonly AwaitStep[] {
    const { policies, clock, mode } = this.deps;
    if (policies.isMissing && mode === "best-effort") return [];
    const ref = refOf(spec);
    const key = policyKey(spec);
    const confirm = async (signal: AbortSignal) => {
      const nowMs = clock.nowMs();
      await policies.refresh(ref, signal);
      this.readAtMs.set(key, nowMs);
      return this.isReady(spec, ref);
    };
    const isRead = clock.nowMs() - (this.readAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < readForMs;
    const isCertain = policies.isShown(objectKey(ref)) && (!isNew || isRead);
    return [{ kind: "await", key, isReady: this.isReady(spec, ref), isCertain, confirm }];
  }

  private isReady(spec: DeploymentSpec, ref: PolicyRef): boolean {
    const entry = this.deps.policies.get(objectKey(ref));
    return (
      entry !== undefined &&
      !this.going.has(policyKey(spec)) &&
      isClaimable(judge(ref.name, entry.value)) &&
      !entry.value.deleting &&
      entry.value.ports.includes(spec.port)
    );
  }

  /** Whether the policy is known to admit the port; true for a ReplicaSet without an environment. */
  admits({ namespace, environmentId, port }: ReplicaSetProjection): boolean {
    if (environmentId === undefined) return true;
    const entry = this.deps.policies.get(`${namespace}/${ingressPolicyName(environmentId)}`);
    return entry?.value.ports.includes(port) ?? false;
  }

  plan(environment: EnvironmentRef): Plan {
    const { policies, mode } = this.deps;
    if (policies.isMissing && mode === "best-effort") return { kind: "nothing" };
    if (!policies.synced) return { kind: "unmet", reason: holdReason(policies) };
    const wanted = this.wanted(environment);
    const key = policyKey(environment);
    this.going.delete(key);
    if (wanted === undefined) return this.planUnused(key, environment);
    this.unusedSinceMs.delete(key);
    const manifest = desiredIngressPolicy(wanted.environment, wanted.ports, this.deps.scraperNamespace);
    const ref = refOf(environment);
    const object = ownedObject(policies, {
      key: objectKey(ref),
      ref,
      contentHash: () => manifestContentHash(manifest),
      ids: () => ({
        workspaceId: wanted.environment.workspaceId,
        environmentId: environment.environmentId,
      }),
      manifest: () => manifest,
      judge: (live) => judge(ref.name, live),
    });
    return {
      kind: "apply",
      steps: [
        { kind: "namespace", name: environment.namespace },
        { kind: "object", object },
      ],
    };
  }

  keys(): readonly string[] {
    return [...this.deps.policies.cache.all()].flatMap(({ value: { namespace, environmentId } }) =>
      environmentId === undefined ? [] : [policyKey({ namespace, environmentId })],
    );
  }

  private planUnused(key: string, environment: EnvironmentRef): Plan {
    const { policies, clock } = this.deps;
    const ref = refOf(environment);
    const live = policies.get(objectKey(ref));
    if (live === undefined) {
      this.unusedSinceMs.delete(key);
      this.readAtMs.delete(key);
      return { kind: "nothing" };
    }
    const sinceMs = this.unusedSinceMs.get(key) ?? clock.nowMs();
    this.unusedSinceMs.set(key, sinceMs);
    const leftMs = sinceMs + unusedMs - clock.nowMs();
    if (leftMs > 0) return { kind: "later", afterMs: leftMs };
    const target = ownedTarget(policies, {
      key: objectKey(ref),
      ref,
      judge: (value) => judge(ref.name, value),
    });
    this.going.add(key);
    return { kind: "delete", targets: [target], authority: "unused" };
  }

  /** All ports that deployments of the environment need, wanted or running; undefined without deployments. */
  private wanted(environment: EnvironmentRef): { environment: PolicyEnvironment; ports: Ports } | undefined {
    const { store, replicaSets, policies } = this.deps;
    const name = environmentName(environment);
    const live = policies.get(objectKey(refOf(environment)))?.value;
    const users: (PolicyEnvironment & { readonly port: number })[] = [];
    for (const { want } of store.ofGroup(name)) if (want.kind === "apply") users.push(want.spec);
    for (const entry of replicaSets.cache.byIndex("environment", name)) {
      const { port, workspaceId } = entry.value;
      if (this.isProven(entry)) {
        if (workspaceId !== undefined) users.push({ ...environment, workspaceId, port });
      } else if (this.keepsOpen(entry, live) && live?.workspaceId !== undefined)
        users.push({ ...environment, workspaceId: live.workspaceId, port });
    }
    const [first, ...others] = users;
    return first && { environment: first, ports: [first.port, ...others.map(({ port }) => port)] };
  }

  /** Anybody can give a ReplicaSet of their own krane's marks; it must not open a port. */
  private isProven({ key, value: { ownership, deploymentId } }: CacheEntry<ReplicaSetProjection>): boolean {
    return (
      ownership.kind === "ours" || (ownership.kind === "unsealed" && this.deps.store.names(key, deploymentId))
    );
  }

  /** One that an older krane left has no seal. Until desired state has named it, its port stays open if it is. */
  private keepsOpen(
    { value: { ownership, port } }: CacheEntry<ReplicaSetProjection>,
    live: PolicyProjection | undefined,
  ): boolean {
    if (ownership.kind !== "unsealed" || this.deps.isInformed()) return false;
    return live?.ports.includes(port) ?? false;
  }
}

interface PolicyRef {
  readonly namespace: string;
  readonly name: string;
}

function refOf({ namespace, environmentId }: EnvironmentRef): PolicyRef {
  return { namespace, name: ingressPolicyName(environmentId) };
}

function judge(name: string, live: PolicyProjection): Ownership {
  // The name derives from the environment, so a label with another environment was edited, and is repaired.
  return judgeIdentity(live.ownership, { what: "environment", live: name, wanted: live.name });
}

function holdReason(policies: Policies): string {
  const { lastError } = policies.status();
  return policies.isMissing
    ? "the cluster has no CiliumNetworkPolicy (isolation.network_policy is required)"
    : `the network policies of the cluster are not known yet${lastError === "" ? "" : `: ${lastError}`}`;
}
