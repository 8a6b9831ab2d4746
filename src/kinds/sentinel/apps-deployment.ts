// The apps/v1 Deployment of a sentinel: the object that the others hang on, and that status is read from.
import type { Deployment } from "kubernetes-types/apps/v1.js";
import { orderAnnotations } from "../../model/kept-order.ts";
import { components } from "../../model/labels.ts";
import { withManifestHash } from "../../model/manifest-hash.ts";
import { identityLabels, sentinelLabels } from "./identity.ts";
import { desiredSentinelTemplate, type SentinelPodSettings } from "./pod-template.ts";
import type { SentinelSpec } from "./spec.ts";

const minReadySeconds = 30;

export function desiredSentinelDeployment(spec: SentinelSpec, settings: SentinelPodSettings): Deployment {
  const annotations = orderAnnotations(spec.kept);
  return withManifestHash<Deployment>({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      name: spec.name,
      namespace: spec.namespace,
      labels: sentinelLabels(spec, components.sentinel),
      ...(annotations && { annotations }),
    },
    spec: {
      replicas: spec.replicas,
      minReadySeconds,
      // It cannot be changed once created, so it holds identity only.
      selector: { matchLabels: identityLabels(spec) },
      // A sentinel of one replica must not be without any while it is replaced.
      strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      template: desiredSentinelTemplate(spec, settings),
    },
  });
}
