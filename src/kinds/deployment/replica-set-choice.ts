// Chooses the ReplicaSet that a deployment should have when the sandbox is off.
//
// A setting must not change what runs: a ReplicaSet whose pod template is the one that krane writes with the sandbox keeps
// it until its template changes for another reason, such as a new image. In the other direction there is no choice. A
// template without the sandbox may have been weakened by anybody who can write it, so krane restores the sandbox; running
// pods stay as they are, because a ReplicaSet does not replace them.
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { ContentHashes } from "../../engine/applied-content.ts";
import { annotationKeys } from "../../model/labels.ts";
import { desiredPodTemplate, desiredReplicaSet, type PodSettings, runtimeClassName } from "./pod-template.ts";
import type { DeploymentSpec } from "./spec.ts";

export interface ChosenReplicaSet {
  manifest(): ReplicaSet;
  contentHash(): string;
}

export class ReplicaSetChoice {
  private readonly configured: Variant;
  private readonly sandboxed: Variant | undefined;

  constructor(settings: PodSettings) {
    this.configured = new Variant(settings);
    if (settings.runtimeClass === "")
      this.sandboxed = new Variant({ ...settings, runtimeClass: runtimeClassName });
  }

  /** `liveTemplateHash`: of the ReplicaSet in the cluster; undefined if there is none. */
  of(spec: DeploymentSpec, liveTemplateHash: () => string | undefined): ChosenReplicaSet {
    const { configured, sandboxed } = this;
    if (sandboxed === undefined) return configured.of(spec);
    const live = liveTemplateHash();
    return live !== undefined && live === sandboxed.templateHash(spec)
      ? sandboxed.of(spec)
      : configured.of(spec);
  }
}

/** The ReplicaSets under one configuration. A plan is made for every deployment once a minute, so hashes are kept. */
class Variant {
  private readonly settings: PodSettings;
  private readonly contentHashes = new ContentHashes<DeploymentSpec>();
  private readonly templateHashes = new WeakMap<DeploymentSpec, string>();

  constructor(settings: PodSettings) {
    this.settings = settings;
  }

  of(spec: DeploymentSpec): ChosenReplicaSet {
    let built: ReplicaSet | undefined;
    const manifest = () => {
      built ??= desiredReplicaSet(spec, this.settings);
      return built;
    };
    return { manifest, contentHash: () => this.contentHashes.of(spec, manifest) };
  }

  templateHash(spec: DeploymentSpec): string {
    const known = this.templateHashes.get(spec);
    if (known !== undefined) return known;
    const template = desiredPodTemplate(spec, this.settings);
    const hash = template.metadata?.annotations?.[annotationKeys.templateHash] ?? "";
    this.templateHashes.set(spec, hash);
    return hash;
  }
}
