// A sentinel that is right in every field, for tests that make one thing about it special.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type ApplySentinel, ApplySentinelSchema } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import { parseApplySentinel, type SentinelSpec } from "../../src/kinds/sentinel/spec.ts";
import { describeProblems } from "../../src/model/field-problem.ts";

type Overrides = Exclude<MessageInitShape<typeof ApplySentinelSchema>, ApplySentinel>;

export function applySentinel(overrides: Overrides = {}): ApplySentinel {
  return create(ApplySentinelSchema, {
    k8sName: "gate",
    workspaceId: "ws_1a2B3c4D",
    projectId: "proj_1a2B3c4D",
    environmentId: "env_1a2B3c4D",
    sentinelId: "se_1a2B3c4D",
    image: "registry.example/platform/sentinel:1",
    replicas: 1,
    cpuMillicores: 250n,
    memoryMib: 256n,
    ...overrides,
  });
}

export function sentinelSpec(overrides: Overrides = {}): SentinelSpec {
  const parsed = parseApplySentinel(applySentinel(overrides), { registries: [] });
  if (parsed.kind === "invalid") throw new Error(describeProblems(parsed.problems));
  return parsed.spec;
}
