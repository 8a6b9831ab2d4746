// Hands the five objects of a sentinel to the engine, to apply and delete.
//
// The owner of the apps/v1 Deployment owns the rest. The Deployment is judged by the id in its selector, which is
// immutable. The others are judged by ownership only: their ids are labels, and an edited label is drift to repair.

import { manifestContentHash } from "../../engine/applied-content.ts";
import { type OwnedObject, type OwnedTarget, ownedObject, ownedTarget } from "../../engine/plan.ts";
import { isClaimable, judgeIdentity, type Ownership } from "../../model/ownership.ts";
import { sealedIdsOf } from "../../model/seal.ts";
import {
  type DesiredSentinelObject,
  desiredSentinel,
  desiredSentinelDeployment,
  podSettingsOf,
  type SentinelPart,
  type SentinelPartKind,
  type SentinelSettings,
  sentinelPartsToDelete,
} from "./desired.ts";
import { keptTemplate } from "./original-template.ts";
import type { SentinelCompanionProjection, SentinelDeploymentProjection } from "./projections.ts";
import type { SentinelRef, SentinelSpec } from "./spec.ts";
import type { SentinelCompanions, SentinelKinds } from "./watched-kinds.ts";

type CompanionKind = Exclude<SentinelPartKind, "apps-deployment">;

/** Only hashes are kept, because manifests are large; a manifest is rebuilt when it is sent. */
interface ContentHashes {
  readonly deploymentUid: string;
  readonly byKind: ReadonlyMap<SentinelPartKind, string>;
}

export class SentinelObjects {
  private readonly kinds: SentinelKinds;
  private readonly settings: SentinelSettings;
  /** The uid of the apps/v1 Deployment that had krane's own template. */
  private readonly ownTemplates = new WeakMap<SentinelSpec, string>();
  private readonly contentHashes = new WeakMap<SentinelSpec, ContentHashes>();

  constructor(kinds: SentinelKinds, settings: SentinelSettings) {
    this.kinds = kinds;
    this.settings = settings;
  }

  deployment(spec: SentinelSpec): OwnedObject {
    const { deployments } = this.kinds;
    const key = keyOf(spec);
    // The Deployment's own manifest does not depend on its uid.
    const live = deployments.get(key);
    const deploymentUid = live?.uid ?? "";
    const podSettings = podSettingsOf(this.settings);
    const kept = keptTemplate(spec, podSettings, this.originalOf(spec, live?.value));
    const keptDeployment = kept && desiredSentinelDeployment(spec, podSettings, kept.template);
    return ownedObject(deployments, {
      key,
      ref: refOf(spec),
      contentHash: () =>
        keptDeployment
          ? manifestContentHash(keptDeployment)
          : (this.hashes(spec, deploymentUid).get("apps-deployment") ?? ""),
      manifest: () => keptDeployment ?? partOf(this.build(spec, deploymentUid), "apps-deployment").manifest,
      ids: () => ({ ...sealedIdsOf(spec, spec.sentinelId), keptTemplate: kept?.hash }),
      judge: (live) => judgeSentinel(live, spec.sentinelId),
    });
  }

  /** In the order in which they are applied. `deploymentUid`: the uid of the live apps/v1 Deployment. */
  companions(spec: SentinelSpec, deploymentUid: string): ReadonlyMap<CompanionKind, OwnedObject> {
    const objects = new Map<CompanionKind, OwnedObject>();
    let built: readonly DesiredSentinelObject[] | undefined;
    const build = () => {
      built ??= this.build(spec, deploymentUid);
      return built;
    };
    for (const { kind, ...ref } of [...sentinelPartsToDelete(spec)].reverse()) {
      if (kind === "apps-deployment") continue;
      const object = ownedObject(this.companionsOf(kind), {
        key: keyOf(ref),
        ref,
        contentHash: () => this.hashes(spec, deploymentUid).get(kind) ?? "",
        manifest: () => partOf(build(), kind).manifest,
        ids: () => sealedIdsOf(spec, spec.sentinelId),
        judge: ({ ownership }) => ownership,
      });
      objects.set(kind, object);
    }
    return objects;
  }

  /** In the order in which they are deleted. Without an id, the Deployment too is judged by ownership only. */
  targets(sentinel: SentinelRef, sentinelId: string | undefined): readonly OwnedTarget[] {
    const { deployments } = this.kinds;
    const judge = (live: SentinelDeploymentProjection): Ownership =>
      sentinelId === undefined ? live.ownership : judgeSentinel(live, sentinelId);
    const holder = deployments.get(keyOf(sentinel));
    const verdict = holder && judge(holder.value);
    // If another sentinel has the name now, or krane no longer owns the Deployment, that goes for the companions too.
    const judgeCompanion = ({ ownership }: SentinelCompanionProjection): Ownership =>
      verdict !== undefined && !isClaimable(verdict) ? verdict : ownership;
    // Of a sentinel with nothing left only the Deployment is looked up, or every old deletion would cause five lookups.
    const isSeen = holder !== undefined || this.liveCompanions(sentinel).length > 0;
    return sentinelPartsToDelete(sentinel).map(({ kind, ...ref }) => {
      const place = { key: keyOf(ref), ref };
      if (kind === "apps-deployment") return ownedTarget(deployments, { ...place, judge, isLookedUp: true });
      const companions = this.companionsOf(kind);
      const isLookedUp = companions.synced ? isSeen : !companions.isMissing;
      return ownedTarget(companions, { ...place, judge: judgeCompanion, isLookedUp });
    });
  }

  /** The companions that exist and that krane owns. */
  liveCompanions(sentinel: SentinelRef) {
    return sentinelPartsToDelete(sentinel).flatMap(({ kind, ...ref }) => {
      const live = kind === "apps-deployment" ? undefined : this.companionsOf(kind).get(keyOf(ref));
      return live !== undefined && isClaimable(live.value.ownership) ? [live] : [];
    });
  }

  /**
   * The original's template, if the sentinel has it. Not if this process has seen krane's own there: whoever removes the
   * seal and puts the original's template back makes it look like one that was never taken over.
   */
  private originalOf(spec: SentinelSpec, live: SentinelDeploymentProjection | undefined) {
    if (live?.ownership.kind === "ours" && live.original === undefined) this.ownTemplates.set(spec, live.uid);
    return live !== undefined && this.ownTemplates.get(spec) === live.uid ? undefined : live?.original;
  }

  private companionsOf(kind: CompanionKind): SentinelCompanions {
    const { services, budgets, policies } = this.kinds;
    switch (kind) {
      case "service":
      case "gossip-service":
        return services;
      case "disruption-budget":
        return budgets;
      case "gossip-policy":
        return policies;
    }
  }

  private build(spec: SentinelSpec, deploymentUid: string): readonly DesiredSentinelObject[] {
    return desiredSentinel(spec, this.settings, deploymentUid);
  }

  private hashes(spec: SentinelSpec, deploymentUid: string): ContentHashes["byKind"] {
    const known = this.contentHashes.get(spec);
    if (known?.deploymentUid === deploymentUid) return known.byKind;
    const byKind = new Map<SentinelPartKind, string>();
    for (const { kind, manifest } of this.build(spec, deploymentUid))
      if (kind !== "namespace" && kind !== "pull-secret") byKind.set(kind, manifestContentHash(manifest));
    this.contentHashes.set(spec, { deploymentUid, byKind });
    return byKind;
  }
}

function judgeSentinel(live: SentinelDeploymentProjection, wanted: string): Ownership {
  return judgeIdentity(live.ownership, { what: "sentinel id", live: live.sentinelId, wanted });
}

type PartOf<K> = Extract<DesiredSentinelObject, { readonly kind: K }>;

function partOf<K extends SentinelPartKind>(objects: readonly DesiredSentinelObject[], kind: K): PartOf<K> {
  const found = objects.find((one): one is PartOf<K> => one.kind === kind);
  if (found === undefined) throw new Error(`a sentinel has no ${kind}`);
  return found;
}

function keyOf({ namespace, name }: Pick<SentinelPart, "namespace" | "name">): string {
  return `${namespace}/${name}`;
}

function refOf({ namespace, name }: SentinelRef): { namespace: string; name: string } {
  return { namespace, name };
}
