// What an agent would bring to a cluster for some documents: the same manifests, from the same functions of the
// model, in an order in which each finds what it needs.
//
// - What several documents share is there once: a namespace, its pull secret, and the ingress policy of an
//   environment, which lets in the ports of all its deployments.
// - The uid of a sentinel's apps/v1 Deployment is known to the cluster alone. In the references to it, it is empty,
//   which the API server refuses: with any other text in its place, what is applied by hand would be taken for
//   an orphan and deleted. The hash of such a manifest is that of the manifest as it is shown.

import { type DeploymentSettings, desiredDeployment } from "../kinds/deployment/desired.ts";
import { desiredIngressPolicy, type Ports } from "../kinds/deployment/ingress-policy.ts";
import { type DeploymentSpec, parseApplyDeployment } from "../kinds/deployment/spec.ts";
import { desiredPolicy } from "../kinds/policy/desired.ts";
import { parseApplyPolicy } from "../kinds/policy/spec.ts";
import { desiredSentinel } from "../kinds/sentinel/desired.ts";
import { parseApplySentinel } from "../kinds/sentinel/spec.ts";
import type { KubeObject } from "../kube/types.ts";
import { describeProblems, type ParsedMessage } from "../model/field-problem.ts";
import { desiredNamespace } from "../model/names.ts";
import type { Document } from "./document.ts";
import type { DocumentRules } from "./kinds.ts";

export interface RenderSettings extends DeploymentSettings {
  /** The agent's, as sentinels are told it. */
  readonly region: string;
  /** The namespace that krane fetches documents from, where it does. */
  readonly scraperNamespace?: string;
}

type PortsByPlace = ReadonlyMap<string, ReadonlySet<DeploymentSpec["port"]>>;

export const unknownUid = "";

/** `documents`: as `parseDocuments` gave them under the same rules. Environments are nothing in a cluster. */
export function renderedObjects(
  documents: readonly Document[],
  settings: RenderSettings,
  rules: DocumentRules,
): readonly KubeObject[] {
  const ports = new Map<string, Set<DeploymentSpec["port"]>>();
  for (const document of documents) {
    if (document.kind !== "deployment") continue;
    const spec = specOf(parseApplyDeployment(document.spec, rules));
    ports.set(placeOf(spec), (ports.get(placeOf(spec)) ?? new Set()).add(spec.port));
  }
  return firstOfEach(documents.flatMap((document) => objectsOf(document, ports, settings, rules)));
}

function objectsOf(
  document: Document,
  ports: PortsByPlace,
  settings: RenderSettings,
  rules: DocumentRules,
): readonly KubeObject[] {
  switch (document.kind) {
    case "deployment":
      return deploymentObjects(specOf(parseApplyDeployment(document.spec, rules)), ports, settings);
    case "sentinel": {
      const spec = specOf(parseApplySentinel(document.spec, rules));
      return desiredSentinel(spec, settings, unknownUid).map(({ manifest }) => manifest);
    }
    case "policy": {
      const spec = specOf(parseApplyPolicy(document.spec, rules));
      return [desiredNamespace(spec.namespace), desiredPolicy(spec)];
    }
    case "environment":
      return [];
  }
}

function deploymentObjects(
  spec: DeploymentSpec,
  portsByPlace: PortsByPlace,
  settings: RenderSettings,
): readonly KubeObject[] {
  const ports: Ports = [spec.port, ...(portsByPlace.get(placeOf(spec)) ?? [])];
  return desiredDeployment(spec, settings, []).map(({ kind, manifest }) =>
    kind === "ingress-policy" ? desiredIngressPolicy(spec, ports, settings.scraperNamespace) : manifest,
  );
}

/** Where the ingress policy of an environment is shared. */
function placeOf({ namespace, environmentId }: DeploymentSpec): string {
  return `${namespace}/${environmentId}`;
}

function firstOfEach(objects: readonly KubeObject[]): readonly KubeObject[] {
  const seen = new Map<string, KubeObject>();
  for (const object of objects) {
    const { kind, metadata } = object;
    const key = `${kind} ${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
    if (!seen.has(key)) seen.set(key, object);
  }
  return [...seen.values()];
}

function specOf<T>(parsed: ParsedMessage<T>): T {
  if (parsed.kind === "valid") return parsed.spec;
  throw new TypeError(
    `a document was taken that the model does not take: ${describeProblems(parsed.problems)}`,
  );
}
