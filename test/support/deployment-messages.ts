// A deployment that is right in every field, for tests that make one thing about it special.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ApplyDeployment, ApplyDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { type DeploymentSpec, parseApplyDeployment } from "../../src/kinds/deployment/spec.ts";
import { describeProblems } from "../../src/model/field-problem.ts";

type Owner = Pick<ApplyDeployment, "environmentId" | "workspaceId" | "projectId">;
type Overrides = Exclude<MessageInitShape<typeof ApplyDeploymentSchema>, ApplyDeployment>;

export function applyDeployment(overrides: Overrides = {}): ApplyDeployment {
  return create(ApplyDeploymentSchema, {
    k8sNamespace: "acme",
    k8sName: "web",
    workspaceId: "ws_1a2B3c4D",
    projectId: "proj_1a2B3c4D",
    environmentId: "env_1a2B3c4D",
    deploymentId: "d_1a2B3c4D",
    image: "registry.example/acme/web:1",
    replicas: 1,
    cpuMillicores: 250n,
    memoryMib: 256n,
    ...overrides,
  });
}

export function deploymentSpec(overrides: Overrides = {}): DeploymentSpec {
  return specOf(applyDeployment(overrides));
}

export function specOf(message: ApplyDeployment): DeploymentSpec {
  const parsed = parseApplyDeployment(message, { registries: [] });
  if (parsed.kind === "invalid") throw new Error(describeProblems(parsed.problems));
  return parsed.spec;
}

export function utf8(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

/** The environment of a deployment; the admin API accepts none without it. */
export function environmentOf({ environmentId: id, workspaceId, projectId }: Owner = applyDeployment()): {
  readonly id: string;
  readonly workspaceId: string;
  readonly projectId: string;
} {
  return { id, workspaceId, projectId };
}
