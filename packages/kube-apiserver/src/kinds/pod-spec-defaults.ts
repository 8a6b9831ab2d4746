// Sets the defaults of a pod spec, in a pod or in a template. Pods have a few more defaults (see defaultPod), which
// templates leave unset.
import type { Container, PodSpec, Probe, ResourceRequirements, Volume } from "kubernetes-types/core/v1.js";
import type { Draft } from "../resource.ts";

// 0644, as JSON can write it.
const fileMode = 420;

export function defaultPodSpec(spec: Draft<PodSpec>): void {
  spec.restartPolicy ??= "Always";
  spec.dnsPolicy ??= "ClusterFirst";
  spec.schedulerName ??= "default-scheduler";
  spec.securityContext ??= {};
  spec.terminationGracePeriodSeconds ??= 30;
  // The deprecated name of the same field; both always have the same value.
  if (spec.serviceAccountName !== undefined) spec.serviceAccount = spec.serviceAccountName;
  else if (spec.serviceAccount !== undefined) spec.serviceAccountName = spec.serviceAccount;
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
  for (const container of allContainers(spec)) defaultContainer(container);
  if (spec.hostNetwork === true) {
    for (const container of allContainers(spec)) {
      for (const port of container.ports ?? []) port.hostPort ??= port.containerPort;
    }
  }
}

/** Defaults of pods only. In a template they would change it, and trigger a rollout. */
export function defaultPod(spec: Draft<PodSpec>): void {
  defaultPodSpec(spec);
  spec.enableServiceLinks ??= true;
  for (const container of allContainers(spec)) requestWhatIsLimited(container.resources);
}

function allContainers(spec: Draft<PodSpec>): Draft<Container>[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
}

function requestWhatIsLimited(resources: Draft<ResourceRequirements> | undefined): void {
  if (resources?.limits === undefined) return;
  resources.requests = { ...resources.limits, ...resources.requests };
}

function defaultContainer(container: Draft<Container>): void {
  container.resources ??= {};
  container.terminationMessagePath ??= "/dev/termination-log";
  container.terminationMessagePolicy ??= "File";
  container.imagePullPolicy ??= isLatest(container.image ?? "") ? "Always" : "IfNotPresent";
  for (const port of container.ports ?? []) port.protocol ??= "TCP";
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef !== undefined) valueFrom.fieldRef.apiVersion ??= "v1";
    if (valueFrom?.resourceFieldRef !== undefined) valueFrom.resourceFieldRef.divisor ??= "0";
  }
  const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
  for (const probe of [livenessProbe, readinessProbe, startupProbe]) {
    if (probe !== undefined) defaultProbe(probe);
  }
  defaultHttpGet(lifecycle?.postStart?.httpGet);
  defaultHttpGet(lifecycle?.preStop?.httpGet);
}

function defaultProbe(probe: Draft<Probe>): void {
  // Zero means "not set" in these fields.
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  defaultHttpGet(probe.httpGet);
  if (probe.grpc !== undefined) probe.grpc.service ??= "";
}

function defaultHttpGet(httpGet: Draft<NonNullable<Probe["httpGet"]>> | undefined): void {
  if (httpGet === undefined) return;
  httpGet.path ||= "/";
  httpGet.scheme ??= "HTTP";
}

function defaultVolume(volume: Draft<Volume>): void {
  if (Object.keys(volume).every((key) => key === "name")) volume.emptyDir = {};
  const { secret, configMap, projected, downwardAPI, hostPath } = volume;
  if (secret !== undefined) secret.defaultMode ??= fileMode;
  if (configMap !== undefined) configMap.defaultMode ??= fileMode;
  if (hostPath !== undefined) hostPath.type ??= "";
  if (downwardAPI !== undefined) {
    downwardAPI.defaultMode ??= fileMode;
    for (const { fieldRef } of downwardAPI.items ?? [])
      if (fieldRef !== undefined) fieldRef.apiVersion ??= "v1";
  }
  if (projected !== undefined) {
    projected.defaultMode ??= fileMode;
    for (const source of projected.sources ?? []) {
      if (source.serviceAccountToken !== undefined) source.serviceAccountToken.expirationSeconds ??= 3600;
      for (const { fieldRef } of source.downwardAPI?.items ?? []) {
        if (fieldRef !== undefined) fieldRef.apiVersion ??= "v1";
      }
    }
  }
}

/** "latest" may change, so it is pulled each time. */
function isLatest(image: string): boolean {
  if (image.includes("@")) return false;
  const tag = image.slice(image.lastIndexOf("/") + 1).split(":")[1];
  return tag === undefined || tag === "latest";
}
