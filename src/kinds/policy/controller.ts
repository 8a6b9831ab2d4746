// Defines the policy controller. A policy is one CiliumNetworkPolicy with the rules of the control plane and metadata
// set by krane. Nothing runs for it, so it has no status reports.
//
// The cluster may lack the CRD. Then all wanted policies wait, with a reason, and are applied once the CRD exists.
// Until the first list response the cache is empty, which must not be mistaken for a cluster without policies.
import { ContentHashes } from "../../engine/applied-content.ts";
import type { ControllerRecipe, DefinitionDeps } from "../../engine/controller-definition.ts";
import {
  type ChangedKeys,
  type ControllerDefinition,
  defineKind,
  isContentChange,
  type ManagedObject,
} from "../../engine/controller-definition.ts";
import type { DesiredEntry, DesiredStore } from "../../engine/desired-store.ts";
import { type OwnedTarget, ownedObject, ownedTarget, type Plan } from "../../engine/plan.ts";
import { WatchedKind } from "../../engine/watched-kind.ts";
import type { CacheChange, CacheEntry } from "../../kube/object-cache.ts";
import { type CustomObject, ciliumNetworkPolicies } from "../../kube/resources.ts";
import { components, ownLabels, ownSelector } from "../../model/labels.ts";
import { heldText } from "../../model/obstacle.ts";
import { isClaimable } from "../../model/ownership.ts";
import type { KindSettings } from "../kind-settings.ts";
import { desiredPolicy } from "./desired.ts";
import { judgePolicy, type PolicyProjection, projectPolicy } from "./projections.ts";
import type { PolicySpec } from "./spec.ts";

// The first list response reconciles the waiting keys. This is the retry interval in case it never arrives.
const lookAgainMs = 10_000;

export const policyRecipe: ControllerRecipe<PolicySpec, never, never, KindSettings> = {
  define: (_, deps) => new PolicyDefinition(deps),
};

class PolicyDefinition implements ControllerDefinition<PolicySpec, never> {
  readonly watchedKinds;
  private readonly store: DesiredStore<PolicySpec>;
  private readonly policies: WatchedKind<CustomObject, PolicyProjection>;
  private readonly contentHashes = new ContentHashes<PolicySpec>();

  constructor(deps: DefinitionDeps<PolicySpec, never>) {
    this.store = deps.store;
    this.policies = new WatchedKind<CustomObject, PolicyProjection>(
      {
        kind: ciliumNetworkPolicies,
        selection: { labelSelector: ownSelector(components.ciliumNetworkPolicy) },
        project: (object) => projectPolicy(object, deps.seal),
        owned: true,
        selectedLabelsOf: () => ownLabels(components.ciliumNetworkPolicy),
        required: false,
      },
      deps,
    );
    const wanted = () => [...deps.store.entries()].map(({ key }) => key);
    this.watchedKinds = [defineKind(this.policies, changedKeys, wanted)];
  }

  *managed(): IterableIterator<ManagedObject> {
    for (const entry of this.policies.cache.all())
      if (isClaimable(entry.value.ownership)) yield this.managedObject(entry);
  }

  managedByKey(key: string): ManagedObject | undefined {
    const entry = this.policies.get(key);
    return entry && isClaimable(entry.value.ownership) ? this.managedObject(entry) : undefined;
  }

  companionKeys(): Iterable<string> {
    return [];
  }

  plan(key: string, entry: DesiredEntry<PolicySpec> | undefined): Plan {
    const { policies } = this;
    if (entry === undefined || entry.want.kind === "invalid") return { kind: "nothing" };
    const isDelete = entry.want.kind === "delete";
    // Without the CRD no policy exists, so a deletion is already complete.
    const isKnown = policies.synced || (isDelete && policies.isMissing);
    if (!isKnown) return this.planUnknown();
    if (entry.want.kind === "apply") return this.planApply(key, entry.want.spec);
    return { kind: "delete", targets: this.targets(key, entry), authority: "order" };
  }

  targets(key: string, entry: DesiredEntry<PolicySpec> | undefined): readonly OwnedTarget[] {
    const [namespace = "", name = ""] = key.split("/");
    const id = entry?.id;
    const judge = (live: PolicyProjection) => (id === undefined ? live.ownership : judgePolicy(live, id));
    const isLookedUp = !this.policies.isMissing;
    return [ownedTarget(this.policies, { key, ref: { namespace, name }, judge, isLookedUp })];
  }

  observe(): undefined {
    return undefined;
  }

  readiness(): { readonly ready: number; readonly total: number } {
    return { ready: 0, total: 0 };
  }

  /** Nothing runs for a policy, so only its deletion can get stuck. */
  failing(): ReadonlyMap<string, string> {
    const failing = new Map<string, string>();
    for (const { key, value } of this.policies.cache.all())
      if (value.heldBy !== undefined) failing.set(key, heldText("CiliumNetworkPolicy", value.heldBy));
    return failing;
  }

  /** Without a seal it is krane's only where desired state names it. */
  private managedObject({ key, value }: CacheEntry<PolicyProjection>): ManagedObject {
    const { policyId: id, ownership } = value;
    return { key, id, isProven: ownership.kind === "ours" || this.store.names(key, id) };
  }

  private planApply(key: string, spec: PolicySpec): Plan {
    const { namespace, name, policyId } = spec;
    const manifest = () => desiredPolicy(spec);
    const object = ownedObject(this.policies, {
      key,
      ref: { namespace, name },
      contentHash: () => this.contentHashes.of(spec, manifest),
      ids: () => ({ id: policyId }),
      manifest,
      judge: (live) => judgePolicy(live, policyId),
    });
    return {
      kind: "apply",
      steps: [
        { kind: "namespace", name: namespace },
        { kind: "object", object },
      ],
    };
  }

  private planUnknown(): Plan {
    const { lastError } = this.policies.status();
    // As after every start, the first list response is still pending; that is not a problem yet.
    if (lastError === "") return { kind: "later", afterMs: lookAgainMs };
    const reason = this.policies.isMissing
      ? "the cluster has no CiliumNetworkPolicy; is Cilium installed?"
      : `the network policies of the cluster are not known yet: ${lastError}`;
    return { kind: "unmet", reason };
  }
}

function changedKeys(change: CacheChange<PolicyProjection>): ChangedKeys {
  return { reconcile: isContentChange(change) ? [change.key] : [], report: [] };
}
