// Judges whether a pod of a deployment, or the template for it, is as isolated as every template that krane writes: in
// the sandbox, without access to its node, and with nothing in it but the tenant's container. That is the same in all
// versions of krane's template, so a pod of an older one is judged just as well; only the sandbox depends on a setting,
// and a pod from a time without it lacks it.
import type { Container, PodSpec, Volume } from "kubernetes-types/core/v1.js";
import { annotationKeys } from "../../model/labels.ts";
import { containerName, type RuntimeClass, runtimeClassName } from "./pod-template.ts";
import { tokenVolumeName } from "./secrets-token.ts";

export interface IsolatedPod {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: PodSpec & { readonly ephemeralContainers?: readonly { readonly name: string }[] };
}

// What the platform's webhook adds to a pod, because krane's label asks for it (labelKeys.inject).
export const injectorContainer = "copy-inject";
const injectorVolume = "inject-bin";
// Annotations that configure the sandbox of one pod.
const sandboxPrefix = "dev.gvisor.";

const tokenGap = "a token of its service account";

/**
 * Names what lowers its isolation; empty if nothing does. `runtimeClass`: the one that is required; with an empty one, the
 * sandbox and none are both fine.
 */
export function weaknessOf(pod: IsolatedPod, runtimeClass: RuntimeClass = runtimeClassName): string {
  return gapsOf(pod, runtimeClass).join(", ");
}

/** Names what makes a pod less isolated than the template of its ReplicaSet; empty if nothing does. */
export function weaknessBeyond(pod: IsolatedPod, template: IsolatedPod): string {
  const accepted = new Set(gapsOf(template));
  // Pods without the mark come from an older agent, whose template let Kubernetes mount the token.
  if (pod.metadata?.annotations?.[annotationKeys.templateHash] === undefined) accepted.add(tokenGap);
  return gapsOf(pod)
    .filter((gap) => !accepted.has(gap))
    .join(", ");
}

function gapsOf({ metadata, spec }: IsolatedPod, runtimeClass: RuntimeClass = runtimeClassName): string[] {
  if (spec === undefined) return [];
  const gaps = [...hostGaps(spec, runtimeClass), ...containerGaps(spec), ...volumeGaps(spec)];
  for (const name in metadata?.annotations ?? {})
    if (name.startsWith(sandboxPrefix)) gaps.push(`annotation ${name}`);
  return gaps;
}

function hostGaps(spec: PodSpec, runtimeClass: RuntimeClass): string[] {
  const gaps: string[] = [];
  const isWithout = runtimeClass === "" && !spec.runtimeClassName;
  if (spec.runtimeClassName !== runtimeClassName && !isWithout)
    gaps.push(`runtimeClassName ${spec.runtimeClassName ?? "is missing"}`);
  if (spec.hostNetwork) gaps.push("hostNetwork");
  if (spec.hostPID) gaps.push("hostPID");
  if (spec.hostIPC) gaps.push("hostIPC");
  if ((spec.serviceAccountName ?? "default") !== "default")
    gaps.push(`service account ${spec.serviceAccountName}`);
  if (spec.automountServiceAccountToken !== false || spec.volumes?.some(isTokenOfAccount))
    gaps.push(tokenGap);
  if (spec.securityContext?.sysctls?.length) gaps.push("sysctls");
  return [...gaps, ...privileges(spec.securityContext as Privileges | undefined)];
}

function containerGaps(spec: NonNullable<IsolatedPod["spec"]>): string[] {
  const gaps: string[] = [];
  for (const container of spec.containers) {
    if (container.name !== containerName) gaps.push(`container ${container.name}`);
    gaps.push(...ofContainer(container));
  }
  for (const container of spec.initContainers ?? []) {
    if (container.name !== injectorContainer) gaps.push(`init container ${container.name}`);
    gaps.push(...ofContainer(container));
  }
  for (const { name } of spec.ephemeralContainers ?? []) gaps.push(`ephemeral container ${name}`);
  return gaps;
}

function ofContainer({ securityContext, ports }: Container): string[] {
  const gaps = privileges(securityContext as Privileges | undefined);
  return ports?.some(({ hostPort }) => hostPort) ? [...gaps, "hostPort"] : gaps;
}

/** The parts of a security context, of a pod or of a container, that give more than a container has by default. */
interface Privileges {
  readonly privileged?: boolean;
  readonly capabilities?: { readonly add?: readonly string[] };
  readonly procMount?: string;
  readonly seccompProfile?: { readonly type?: string };
  readonly appArmorProfile?: { readonly type?: string };
  readonly seLinuxOptions?: object;
  readonly windowsOptions?: { readonly hostProcess?: boolean };
}

function privileges(context: Privileges | undefined): string[] {
  if (context === undefined) return [];
  const gaps: string[] = [];
  if (context.privileged) gaps.push("privileged");
  if (context.capabilities?.add?.length) gaps.push(`capabilities ${context.capabilities.add.join(" ")}`);
  if (context.procMount === "Unmasked") gaps.push("procMount");
  if (context.seccompProfile?.type === "Unconfined") gaps.push("seccompProfile");
  if (context.appArmorProfile?.type === "Unconfined") gaps.push("appArmorProfile");
  if (context.seLinuxOptions !== undefined) gaps.push("seLinuxOptions");
  if (context.windowsOptions?.hostProcess) gaps.push("hostProcess");
  return gaps;
}

function volumeGaps({ volumes = [] }: PodSpec): string[] {
  return volumes
    .filter((volume) => !isExpected(volume) && !isTokenOfAccount(volume))
    .map(({ name }) => `volume ${name}`);
}

/** What Kubernetes adds for a pod that does not refuse it: the token, the certificate and the namespace. */
function isTokenOfAccount({ name, projected }: Volume): boolean {
  const sources = projected?.sources ?? [];
  return (
    name.startsWith("kube-api-access-") &&
    sources.length > 0 &&
    sources.every(({ serviceAccountToken, configMap, downwardAPI }) =>
      [serviceAccountToken, configMap, downwardAPI].some((source) => source !== undefined),
    )
  );
}

function isExpected({ name, projected, emptyDir }: Volume): boolean {
  if (name === injectorVolume) return emptyDir !== undefined;
  const sources = projected?.sources ?? [];
  return (
    name === tokenVolumeName &&
    projected !== undefined &&
    // Without an audience, it is a token for the Kubernetes API.
    sources.every(({ serviceAccountToken }) => serviceAccountToken?.audience)
  );
}
