// The plan step that keeps the pull secret of a namespace up to date. It reads the secret by its fixed name, so krane
// needs no permission to list or watch secrets.
import type { Secret } from "kubernetes-types/core/v1.js";
import type { PlanStep } from "../engine/plan.ts";
import { secrets } from "../kube/resources.ts";
import type { RegistryCredentials } from "../model/image-reference.ts";
import { judgeOwnership } from "../model/ownership.ts";
import {
  desiredPullSecret,
  isPullSecretCurrent,
  type PulledImage,
  pullSecretName,
  pullSecretOf,
} from "../model/pull-secret.ts";
import type { Seal } from "../model/seal.ts";

/** Empty if the image is pulled without the secret, or with one that krane does not write. */
export function pullSecretSteps(
  spec: PulledImage & { readonly namespace: string },
  registry: RegistryCredentials | undefined,
  seal: Seal,
): readonly PlanStep[] {
  if (registry === undefined || pullSecretOf(spec, registry.host) !== pullSecretName) return [];
  const { namespace } = spec;
  const manifest = () => desiredPullSecret(namespace, registry);
  return [
    {
      kind: "checked",
      object: {
        kind: secrets,
        ref: { name: pullSecretName, namespace },
        ids: () => ({}),
        manifest,
        isCurrent: (live) => isPullSecretCurrent(live as Secret, manifest()),
        judge: (live) => judgeOwnership(seal.read(secrets, live.metadata), live.metadata),
      },
    },
  ];
}
