// An agent whose SchedulerService is on, and orders for it in the form of the .proto files.
import type { TestContext } from "node:test";
import { replicaSets } from "../../../src/kube/resources.ts";
import { type AgentWorld, createAgentWorld, type RunningAgent } from "../agent/agent-world.ts";

export const schedulerToken = "kst_of_the_test";
export const scheduler = "krane.v1.SchedulerService";
export const withScheduler = `[scheduler]\ntoken = "${schedulerToken}"\n`;

const never = new AbortController().signal;

export interface SchedulerWorld extends AgentWorld {
  readonly agent: RunningAgent;
  replicaSetNames(): Promise<readonly string[]>;
}

export async function createSchedulerWorld(t: TestContext, more = ""): Promise<SchedulerWorld> {
  const world = await createAgentWorld(t);
  const agent = await world.startAgent(withScheduler + more);
  const replicaSetNames = async () => {
    const { items } = await world.cluster.api.list(replicaSets, { namespace: "acme" }, never);
    return items.map(({ metadata }) => metadata?.name ?? "").sort();
  };
  return { ...world, agent, replicaSetNames };
}

export const deploymentRequest = {
  k8s_namespace: "acme",
  k8s_name: "web",
  workspace_id: "ws_1",
  project_id: "proj_1",
  environment_id: "env_1",
  deployment_id: "d_1",
  image: "registry.example/acme/web:1",
  replicas: 1,
  cpu_millicores: "250",
  memory_mib: "256",
  readiness_id: "rd_1",
} as const;

export const sentinelRequest = {
  k8s_namespace: "sentinel",
  k8s_name: "gate",
  workspace_id: "ws_1",
  project_id: "proj_1",
  environment_id: "env_1",
  sentinel_id: "se_1",
  image: "registry.example/platform/sentinel:1",
  replicas: 1,
  cpu_millicores: "250",
  memory_mib: "256",
} as const;
