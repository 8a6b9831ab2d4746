// The pod template of a sentinel as the original krane writes it. krane's own differs: a label, resources, no token of the
// service account, no variables for Services, and the indentation of the configuration. None of that is worth a restart of
// every sentinel when krane takes a cluster over. So krane keeps the original's template until its own changes for another
// reason, such as a new image. To tell that later, the seal of the apps/v1 Deployment names the hash of krane's own template.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import type { PodTemplateSpec } from "kubernetes-types/core/v1.js";
import { labelKeys } from "../../model/labels.ts";
import { hashOf } from "../../model/manifest-hash.ts";
import {
  configurationVariable,
  desiredSentinelTemplate,
  type SentinelPodSettings,
  sentinelConfiguration,
  sentinelContainerName,
} from "./pod-template.ts";
import type { SentinelSpec } from "./spec.ts";

/** What krane needs to know of a live template of the original. */
export interface OriginalTemplate {
  readonly image: string;
  /** The text of the configuration, as it is written there. */
  readonly configuration: string;
  /** The hash of krane's own template when it took the sentinel over; absent before that. */
  readonly kept?: string;
}

/** Undefined if the template is not the original's. `kept`: as the seal names it. */
export function originalTemplateOf({ spec }: Deployment, kept?: string): OriginalTemplate | undefined {
  const template = spec?.template;
  const container = template?.spec?.containers.find(({ name }) => name === sentinelContainerName);
  if (container === undefined || template?.metadata?.labels?.[labelKeys.managedBy] !== undefined)
    return undefined;
  const { image = "", env = [] } = container;
  const configuration = env.find(({ name }) => name === configurationVariable)?.value;
  if (configuration === undefined) return undefined;
  return { image, configuration, ...(kept !== undefined && { kept }) };
}

export interface KeptTemplate {
  readonly template: PodTemplateSpec;
  /** For the seal. */
  readonly hash: string;
}

/** The template to keep; undefined if krane's own is due. */
export function keptTemplate(
  spec: SentinelSpec,
  settings: SentinelPodSettings,
  live: OriginalTemplate | undefined,
): KeptTemplate | undefined {
  if (
    live === undefined ||
    !isSameConfiguration(live.configuration, sentinelConfiguration(spec, settings.region))
  )
    return undefined;
  const own = desiredSentinelTemplate(spec, settings);
  const hash = hashOf(own);
  const isKept = live.kept === undefined ? live.image === spec.image.text : live.kept === hash;
  return isKept ? { template: asOriginal(own, live.configuration), hash } : undefined;
}

function asOriginal({ metadata, spec }: PodTemplateSpec, configuration: string): PodTemplateSpec {
  const { [labelKeys.managedBy]: _, ...labels } = metadata?.labels ?? {};
  const {
    automountServiceAccountToken: __,
    enableServiceLinks: ___,
    imagePullSecrets: ____,
    ...pod
  } = spec ?? {
    containers: [],
  };
  const containers = pod.containers.map((container) => ({
    ...container,
    // The default; without it, krane would take the default for a change that somebody made.
    resources: {},
    env: [{ name: configurationVariable, value: configuration }],
  }));
  return { metadata: { ...metadata, labels }, spec: { ...pod, containers } };
}

/** Whether two texts differ in white space around lines and equal signs only; no value of krane's spans lines. */
function isSameConfiguration(one: string, other: string): boolean {
  const normal = (text: string) =>
    text
      .split("\n")
      .map((line) => line.trim().replace(/^(\w+)\s*=\s*/, "$1 = "))
      .filter((line) => line !== "")
      .join("\n");
  return normal(one) === normal(other);
}
