// The deployments that are an app's releases, and their names. A deployment's name is unique in its region, and two workspaces may both have an app
// called "web", so the name of a release also has a hash of the app's id.
import { createHash } from "node:crypto";
import { clone, create, equals } from "@bufbuild/protobuf";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../gen/ctrl/v1/deployment_pb.ts";
import type { AppSpec, Release } from "../../gen/krane/admin/v1/app_pb.ts";

/** Up to this number, an id and a name fit into a label value and a DNS label. */
const numberMax = 9_999_999;
const hashLength = 6;
const numberLength = String(numberMax).length;

/** The longest id of an app. */
export const appIdLengthMax = 63 - 1 - numberLength;
/** The longest name of an app. */
export const appNameLengthMax = 63 - 2 - hashLength - numberLength;

/** The deployment of a release; `secrets` as a deployment has them. */
export function releaseTemplate(
  { template }: AppSpec,
  number: number,
  secrets = new Uint8Array(),
): ApplyDeployment {
  const own = template ? clone(ApplyDeploymentSchema, template) : create(ApplyDeploymentSchema);
  const { deploymentId: id, k8sName: name } = own;
  const hash = createHash("sha256").update(id).digest("hex").slice(0, hashLength);
  return Object.assign(own, {
    deploymentId: `${id}-${number}`,
    k8sName: `${name}-${hash}-${number}`,
    encryptedEnvironmentVariables: secrets,
  });
}

/**
 * The id of the route of an app. It is made of the name, so that a name that passes from a deleted app to another one
 * stays one object, of which no older deletion can be replayed.
 */
export function routeIdOf({
  k8sNamespace,
  k8sName,
}: Pick<ApplyDeployment, "k8sNamespace" | "k8sName">): string {
  return `rt_${createHash("sha256").update(`${k8sNamespace}/${k8sName}`).digest("hex").slice(0, 16)}`;
}

/** Whether the release runs what the spec says: they differ in nothing but the number of pods and the secrets. */
export function isReleaseOf(
  spec: AppSpec,
  { number, template }: Pick<Release, "number" | "template">,
): boolean {
  if (template === undefined) return false;
  const bare = { replicas: 0, encryptedEnvironmentVariables: new Uint8Array() };
  const program = (message: ApplyDeployment) => create(ApplyDeploymentSchema, { ...message, ...bare });
  return equals(ApplyDeploymentSchema, program(template), program(releaseTemplate(spec, number)));
}

/** The number of the release that a deployment of the app is; 0 if it is none. */
export function releaseNumber(appId: string, deploymentId: string): number {
  const rest = deploymentId.startsWith(`${appId}-`) ? deploymentId.slice(appId.length + 1) : "";
  return /^[1-9]\d{0,6}$/.test(rest) ? Number(rest) : 0;
}
