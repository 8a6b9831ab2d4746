// The policy controller as a table. A policy is one object with the rules of the control plane and the
// name of krane's choosing; nothing runs for it, so there is nothing to report about it.
//
// The kind may be missing from a cluster. Then everything that is wanted waits and says so, and begins by
// itself once the kind is there: a kind that is not known yet shows no objects, and must not be taken for
// a cluster in which there are none.
import { ContentHashes } from "../../engine/applied-content.ts";
import type { ControllerRecipe, DefinitionDeps } from "../../engine/controller.ts";
import {
  type ChangedKeys,
  type ControllerDefinition,
  defineKind,
  isContentChange,
  type ManagedObject,
} from "../../engine/controller-definition.ts";
import type { DesiredEntry } from "../../engine/desired-store.ts";
import type { OrderedObject } from "../../engine/orders.ts";
import { type OwnedTarget, ownedObject, ownedTarget, type Plan } from "../../engine/plan.ts";
import { WatchedKind } from "../../engine/watched-kind.ts";
import type { CacheChange, CacheEntry } from "../../kube/object-cache.ts";
import { type CustomObject, ciliumNetworkPolicies } from "../../kube/resources.ts";
import { components, ownSelector } from "../../model/labels.ts";
import { heldText } from "../../model/obstacle.ts";
import type { KindSettings } from "../kind-settings.ts";
import { desiredPolicy } from "./desired.ts";
import { judgePolicy, type PolicyProjection, projectPolicy } from "./projections.ts";
import type { PolicySpec } from "./spec.ts";

// The first answer brings up what waits for it; this is for the case that there never is one.
const lookAgainMs = 10_000;

export const policyRecipe: ControllerRecipe<PolicySpec, never, never, KindSettings> = {
  define: (_, deps) => new PolicyDefinition(deps),
};

class PolicyDefinition implements ControllerDefinition<PolicySpec, never> {
  readonly kinds;
  private readonly policies: WatchedKind<CustomObject, PolicyProjection>;
  private readonly contentHashes = new ContentHashes<PolicySpec>();

  constructor(deps: DefinitionDeps<PolicySpec, never>) {
    this.policies = new WatchedKind<CustomObject, PolicyProjection>(
      {
        kind: ciliumNetworkPolicies,
        selection: { labelSelector: ownSelector(components.ciliumNetworkPolicy) },
        project: projectPolicy,
        owned: true,
        required: false,
      },
      deps,
    );
    const wanted = () => [...deps.store.entries()].map(({ key }) => key);
    this.kinds = [defineKind(this.policies, changedKeys, wanted)];
  }

  *managed(): IterableIterator<ManagedObject> {
    for (const entry of this.policies.cache.all()) if (isOurs(entry)) yield managedObject(entry);
  }

  managedByKey(key: string): ManagedObject | undefined {
    const entry = this.policies.get(key);
    return entry && isOurs(entry) ? managedObject(entry) : undefined;
  }

  companionKeys(): Iterable<string> {
    return [];
  }

  orderedObject(key: string): OrderedObject | undefined {
    const live = this.policies.get(key)?.value;
    // What is on its way out was ordered away.
    if (live === undefined || live.ownership.kind !== "ours" || live.deleting) return undefined;
    const { namespace, name, policyId: id, ordered } = live;
    return { namespace, name, id, ordered };
  }

  plan(key: string, entry: DesiredEntry<PolicySpec> | undefined): Plan {
    const { policies } = this;
    if (entry === undefined || entry.want.kind === "invalid") return { kind: "nothing" };
    const isDelete = entry.want.kind === "delete";
    // Where there is no such kind, what is to be deleted is gone with it.
    const isKnown = policies.synced || (isDelete && policies.isMissing);
    if (!isKnown) return this.planUnknown();
    if (entry.want.kind === "apply") return this.planApply(key, entry.want.spec);
    return { kind: "delete", targets: this.targets(key, entry), authority: "order" };
  }

  targets(key: string, entry: DesiredEntry<PolicySpec> | undefined): readonly OwnedTarget[] {
    const [namespace = "", name = ""] = key.split("/");
    const id = entry?.id;
    const judge = (live: PolicyProjection) => (id === undefined ? live.ownership : judgePolicy(live, id));
    return [ownedTarget(this.policies, { key, ref: { namespace, name }, judge })];
  }

  observe(): undefined {
    return undefined;
  }

  readiness(): { readonly ready: number; readonly total: number } {
    return { ready: 0, total: 0 };
  }

  /** Nothing runs for a policy; it can only fail to go. */
  failing(): ReadonlyMap<string, string> {
    const failing = new Map<string, string>();
    for (const { key, value } of this.policies.cache.all())
      if (value.heldBy !== undefined) failing.set(key, heldText("CiliumNetworkPolicy", value.heldBy));
    return failing;
  }

  private planApply(key: string, spec: PolicySpec): Plan {
    const { namespace, name, policyId } = spec;
    const manifest = () => desiredPolicy(spec);
    const object = ownedObject(this.policies, {
      key,
      ref: { namespace, name },
      contentHash: () => this.contentHashes.of(spec, manifest),
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
    // The first answer is on its way, as after every start; that is no trouble yet.
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

function isOurs({ value }: CacheEntry<PolicyProjection>): boolean {
  return value.ownership.kind === "ours";
}

function managedObject({ key, value }: CacheEntry<PolicyProjection>): ManagedObject {
  return { key, id: value.policyId, isOrdered: value.ordered !== undefined };
}
