// Sets of deployments with distinct names, so that the sides of a measurement never share an object. A namespace holds
// one environment, and so one ingress policy.
import { create } from "@bufbuild/protobuf";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { desiredDeployment } from "../../src/kinds/deployment/desired.ts";
import { parseApplyDeployment } from "../../src/kinds/deployment/spec.ts";
import { describeProblems } from "../../src/model/field-problem.ts";
import { labelKeys, managedBy } from "../../src/model/labels.ts";
import { applyQuery, applyType, type RawPatch } from "../workers/raw-applier.ts";

export interface SampleSet {
  /** Part of every name. */
  readonly name: string;
  readonly deployments: number;
  readonly namespaces: number;
}

export interface DeploymentVariant {
  readonly tag?: string;
  readonly replicas?: number;
}

export function sampleDeployment(
  { name, namespaces }: SampleSet,
  index: number,
  { tag = "1", replicas = 0 }: DeploymentVariant = {},
): ApplyDeployment {
  const home = index % namespaces;
  return create(ApplyDeploymentSchema, {
    k8sNamespace: `${name}-${home}`,
    k8sName: `${name}-application-${index}`,
    workspaceId: `ws_${name}`,
    projectId: `proj_${name}_${home}`,
    environmentId: `env_${name}_${home}`,
    deploymentId: `d_${name}_${index}`,
    image: `registry.example/tenant/application:${tag}`,
    replicas,
    cpuMillicores: 250n,
    memoryMib: 256n,
    healthcheck: new TextEncoder().encode(JSON.stringify({ method: "GET", path: "/health" })),
  });
}

export function keyOf({ k8sNamespace, k8sName }: ApplyDeployment): string {
  return `${k8sNamespace}/${k8sName}`;
}

/** Namespaces and policies count as well: both sides write them. */
export function objectCount({ deployments, namespaces }: SampleSet): number {
  return deployments + 2 * Math.min(namespaces, deployments);
}

export interface RawManifests {
  /** Each stage needs the previous one. */
  readonly stages: readonly (readonly RawPatch[])[];
}

/**
 * The manifests that krane would write for the set, ready to send. They lack the one label that would make the objects
 * krane's: an agent that found them would ask the control plane about them.
 */
export function rawManifests(set: SampleSet): RawManifests {
  const stages = {
    namespace: new Map<string, RawPatch>(),
    "pull-secret": new Map<string, RawPatch>(),
    "ingress-policy": new Map<string, RawPatch>(),
    "replica-set": new Map<string, RawPatch>(),
  };
  for (let index = 0; index < set.deployments; index++) {
    for (const { kind, patch } of rawDeployment(sampleDeployment(set, index)))
      stages[kind].set(patch.path, patch);
  }
  return { stages: Object.values(stages).map((patches) => [...patches.values()]) };
}

export function rawReplicaSet(message: ApplyDeployment): RawPatch {
  const found = rawDeployment(message).find(({ kind }) => kind === "replica-set");
  if (found === undefined) throw new Error("a deployment without a ReplicaSet");
  return found.patch;
}

function rawDeployment(message: ApplyDeployment) {
  const parsed = parseApplyDeployment(message, { registries: [] });
  if (parsed.kind === "invalid") throw new Error(describeProblems(parsed.problems));
  return desiredDeployment(parsed.spec, { secrets: { audience: "krane" } }, []).map(({ kind, manifest }) => {
    const { namespace, name } = manifest.metadata ?? {};
    const folder = namespace === undefined ? "" : `/namespaces/${namespace}`;
    const path = `${collections[kind](folder)}/${name}?${applyQuery}`;
    return { kind, patch: { path, body: disowned(manifest), contentType: applyType } };
  });
}

const collections = {
  namespace: () => "/api/v1/namespaces",
  "pull-secret": (folder: string) => `/api/v1${folder}/secrets`,
  "ingress-policy": (folder: string) => `/apis/cilium.io/v2${folder}/ciliumnetworkpolicies`,
  "replica-set": (folder: string) => `/apis/apps/v1${folder}/replicasets`,
};

function disowned(manifest: unknown): string {
  return JSON.stringify(manifest, (key, value) =>
    key === labelKeys.managedBy && value === managedBy ? "bench" : value,
  );
}
