// krane's agent on the original's control plane: each field of each message reaches the object, or is rejected by name;
// each field of its reports arrives; and its calls are those that the original's agent makes.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { isReflectList, isReflectMessage, type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { ApplyCiliumNetworkPolicySchema } from "../../src/gen/ctrl/v1/cilium_network_policy_pb.ts";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import {
  ApplyDeploymentSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as Status,
} from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ApplySentinelSchema, Health } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { appsDeployments, ciliumNetworkPolicies, pods, replicaSets } from "../../src/kube/resources.ts";
import { agentClient, createAgentWorld, region } from "../integration/agent/agent-world.ts";
import { applyDeployment, utf8 } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { applyPolicy, policyDocument } from "../support/policy-messages.ts";
import { applySentinel } from "../support/sentinel-messages.ts";
import { type ArrivedCall, serveOriginalControlPlane } from "./original-control-plane.ts";
import { fieldsOf } from "./original-fields.ts";

const never = new AbortController().signal;

async function createWorld(t: TestContext) {
  const plane = await serveOriginalControlPlane(t);
  const { cluster, startAgent } = await createAgentWorld(t);
  const start = () => startAgent("", { control: `url = "${plane.server.url}"\ntoken = "t-1234567890"` });
  const agent = await start();
  return { plane, cluster, agent, start, client: agentClient(t, agent.url) };
}

const blob = JSON.stringify({ secrets: { FIELD_12: "ZmllbGQxMg==" } });
const healthcheck = {
  method: "GET",
  path: "/field17",
  intervalSeconds: 17,
  timeoutSeconds: 5,
  failureThreshold: 3,
};

const deployment = create(ApplyDeploymentSchema, {
  k8sNamespace: "field-one",
  k8sName: "field-two",
  workspaceId: "ws_field3",
  projectId: "proj_field4",
  environmentId: "env_field5",
  deploymentId: "d_field6",
  image: "registry.example/field:7",
  replicas: 2,
  cpuMillicores: 1009n,
  memoryMib: 1010n,
  buildId: "build_field11",
  encryptedEnvironmentVariables: utf8(blob),
  command: ["field", "thirteen"],
  port: 1014,
  shutdownSignal: "SIGQUIT",
  healthcheck: utf8(JSON.stringify(healthcheck)),
});

const sentinel = create(ApplySentinelSchema, {
  k8sName: "field-one",
  workspaceId: "ws_field2",
  projectId: "proj_field3",
  environmentId: "env_field4",
  sentinelId: "se_field5",
  image: "registry.example/field:6",
  replicas: 7,
  cpuMillicores: 1008n,
  memoryMib: 1009n,
});

const policy = create(ApplyCiliumNetworkPolicySchema, {
  k8sNamespace: "field-one",
  k8sName: "field-two",
  ciliumNetworkPolicyId: "net_field3",
  policy: utf8(JSON.stringify(policyDocument)),
});

describe("every field of the original's control plane reaches its object:", () => {
  test("of a deployment", async (t) => {
    const { plane, cluster } = await createWorld(t);
    plane.deployments.add({ state: { case: "apply", value: deployment } });
    const ref = { namespace: "field-one", name: "field-two" };
    const set = await eventually("it is applied", async () => {
      const found = await cluster.api.get(replicaSets, ref, {}, never);
      return found ?? assert.fail("not yet");
    });
    const labels = set.metadata?.labels;
    const template = set.spec?.template;
    assert.deepEqual(template?.metadata?.labels, labels);
    const [container] = template?.spec?.containers ?? [];
    const { limits } = container?.resources ?? {};
    const encrypted = container?.env?.find(({ name }) => name === "UNKEY_ENCRYPTED_ENV")?.value ?? "";
    const { httpGet, periodSeconds } = container?.livenessProbe ?? {};
    const arrived = {
      k8s_namespace: set.metadata?.namespace,
      k8s_name: set.metadata?.name,
      workspace_id: labels?.["unkey.com/workspace.id"],
      project_id: labels?.["unkey.com/project.id"],
      environment_id: labels?.["unkey.com/environment.id"],
      deployment_id: labels?.["unkey.com/deployment.id"],
      image: container?.image,
      replicas: set.spec?.replicas,
      cpu_millicores: limits?.["cpu"],
      memory_mib: limits?.["memory"],
      build_id: labels?.["unkey.com/build.id"],
      encrypted_environment_variables: Buffer.from(encrypted, "base64").toString(),
      command: container?.command,
      port: container?.ports?.[0]?.containerPort,
      shutdown_signal: container?.lifecycle?.preStop?.exec?.command,
      healthcheck: [httpGet, periodSeconds],
    };
    assert.deepEqual(arrived, {
      k8s_namespace: "field-one",
      k8s_name: "field-two",
      workspace_id: "ws_field3",
      project_id: "proj_field4",
      environment_id: "env_field5",
      deployment_id: "d_field6",
      image: "registry.example/field:7",
      replicas: 2,
      cpu_millicores: "1009m",
      memory_mib: "1010Mi",
      build_id: "build_field11",
      encrypted_environment_variables: blob,
      command: ["field", "thirteen"],
      port: 1014,
      shutdown_signal: ["kill", "-SIGQUIT", "1"],
      healthcheck: [{ path: "/field17", port: 1014, scheme: "HTTP" }, 17],
    });
    assert.deepEqual(Object.keys(arrived), await fieldsOf("ApplyDeployment"));
  });

  test("of a sentinel", async (t) => {
    const { plane, cluster } = await createWorld(t);
    plane.sentinels.add({ state: { case: "apply", value: sentinel } });
    const ref = { namespace: "sentinel", name: "field-one" };
    const gate = await eventually("it is applied", async () => {
      const found = await cluster.api.get(appsDeployments, ref, {}, never);
      return found ?? assert.fail("not yet");
    });
    const labels = gate.metadata?.labels;
    const [container] = gate.spec?.template?.spec?.containers ?? [];
    const { limits } = container?.resources ?? {};
    const arrived = {
      k8s_name: gate.metadata?.name,
      workspace_id: labels?.["unkey.com/workspace.id"],
      project_id: labels?.["unkey.com/project.id"],
      environment_id: labels?.["unkey.com/environment.id"],
      sentinel_id: labels?.["unkey.com/sentinel.id"],
      image: container?.image,
      replicas: gate.spec?.replicas,
      cpu_millicores: limits?.["cpu"],
      memory_mib: limits?.["memory"],
    };
    assert.deepEqual(arrived, {
      k8s_name: "field-one",
      workspace_id: "ws_field2",
      project_id: "proj_field3",
      environment_id: "env_field4",
      sentinel_id: "se_field5",
      image: "registry.example/field:6",
      replicas: 7,
      cpu_millicores: "1008m",
      memory_mib: "1009Mi",
    });
    assert.deepEqual(Object.keys(arrived), await fieldsOf("ApplySentinel"));
    const configuration = container?.env?.find(({ name }) => name === "UNKEY_CONFIG_DATA")?.value ?? "";
    for (const id of ["ws_field2", "env_field4", "se_field5", region])
      assert.ok(configuration.includes(id), id);
  });

  test("of a policy", async (t) => {
    const { plane, cluster } = await createWorld(t);
    plane.policies.add({ state: { case: "apply", value: policy } });
    const ref = { namespace: "field-one", name: "field-two" };
    const live = await eventually("it is applied", async () => {
      const found = await cluster.api.get(ciliumNetworkPolicies, ref, {}, never);
      return found ?? assert.fail("not yet");
    });
    const arrived = {
      k8s_namespace: live.metadata?.namespace,
      k8s_name: live.metadata?.name,
      cilium_network_policy_id: live.metadata?.labels?.["unkey.com/networkpolicy.id"],
      policy: (live as { readonly spec?: unknown }).spec,
    };
    assert.deepEqual(arrived, {
      k8s_namespace: "field-one",
      k8s_name: "field-two",
      cilium_network_policy_id: "net_field3",
      policy: policyDocument.spec,
    });
    assert.deepEqual(Object.keys(arrived), await fieldsOf("ApplyCiliumNetworkPolicy"));
  });

  test("of deletions, and nothing else is deleted", async (t) => {
    const { plane, cluster } = await createWorld(t);
    for (const k8sName of ["web", "left"])
      plane.deployments.add({
        state: { case: "apply", value: applyDeployment({ k8sName, deploymentId: `d_${k8sName}` }) },
      });
    for (const k8sName of ["gate", "left"])
      plane.sentinels.add({
        state: { case: "apply", value: applySentinel({ k8sName, sentinelId: `se_${k8sName}` }) },
      });
    for (const k8sName of ["rule", "left"])
      plane.policies.add({
        state: { case: "apply", value: applyPolicy({ k8sName, ciliumNetworkPolicyId: `net_${k8sName}` }) },
      });
    const names = async () => {
      const sets = await cluster.api.list(replicaSets, { namespace: "acme" }, never);
      const gates = await cluster.api.list(appsDeployments, { namespace: "sentinel" }, never);
      const rules = await cluster.api.list(ciliumNetworkPolicies, { namespace: "acme" }, never);
      return [sets, gates, rules].map(({ items }) =>
        items.map(({ metadata }) => metadata?.name ?? "").filter((name) => !name.startsWith("allow-")),
      );
    };
    await eventually("all are applied", async () =>
      assert.deepEqual(await names(), [
        ["left", "web"],
        ["gate", "left"],
        ["left", "rule"],
      ]),
    );
    plane.deployments.add({ state: { case: "delete", value: { k8sNamespace: "acme", k8sName: "web" } } });
    plane.sentinels.add({ state: { case: "delete", value: { k8sName: "gate" } } });
    plane.policies.add({ state: { case: "delete", value: { k8sNamespace: "acme", k8sName: "rule" } } });
    await eventually("three are deleted", async () =>
      assert.deepEqual(await names(), [["left"], ["left"], ["left"]]),
    );
    await eventually("their end is reported", () => {
      const ended = plane.deploymentReports.flatMap(({ change }) =>
        change.case === "delete" ? [change.value.k8sName] : [],
      );
      assert.deepEqual(new Set(ended), new Set(["web"]));
      const last = plane.sentinelReports.findLast(({ k8sName }) => k8sName === "gate");
      assert.deepEqual([last?.availableReplicas, last?.health], [0, Health.UNHEALTHY]);
    });
  });
});

test("a bad value is rejected with the name of its field, and nothing is applied", async (t) => {
  const { plane, cluster, client } = await createWorld(t);
  const bad = {
    deployment: {
      k8s_namespace: { k8sNamespace: "kube-system" },
      k8s_name: { k8sName: "Not_A_Name" },
      workspace_id: { workspaceId: "a b" },
      project_id: { projectId: "" },
      environment_id: { environmentId: "-" },
      deployment_id: { deploymentId: "a/b" },
      image: { image: "not an image" },
      replicas: { replicas: -1 },
      cpu_millicores: { cpuMillicores: 0n },
      memory_mib: { memoryMib: -1n },
      build_id: { buildId: "a b" },
      encrypted_environment_variables: { encryptedEnvironmentVariables: utf8("[]") },
      command: { command: ["a\0b"] },
      port: { port: 65_536 },
      shutdown_signal: { shutdownSignal: "SIGHUP" },
      healthcheck: { healthcheck: utf8("{") },
    },
    sentinel: {
      k8s_name: { k8sName: "Not_A_Name" },
      workspace_id: { workspaceId: "a b" },
      project_id: { projectId: "" },
      environment_id: { environmentId: "-" },
      sentinel_id: { sentinelId: "a/b" },
      image: { image: "not an image" },
      replicas: { replicas: -1 },
      cpu_millicores: { cpuMillicores: 0n },
      memory_mib: { memoryMib: -1n },
    },
    policy: {
      k8s_namespace: { k8sNamespace: "kube-system" },
      k8s_name: { k8sName: "Not_A_Name" },
      cilium_network_policy_id: { ciliumNetworkPolicyId: "a/b" },
      policy: { policy: utf8("[]") },
    },
  };
  assert.deepEqual(Object.keys(bad.deployment), await fieldsOf("ApplyDeployment"));
  assert.deepEqual(Object.keys(bad.sentinel), await fieldsOf("ApplySentinel"));
  assert.deepEqual(Object.keys(bad.policy), await fieldsOf("ApplyCiliumNetworkPolicy"));
  for (const [index, wrong] of Object.values(bad.deployment).entries()) {
    const value = applyDeployment({ k8sName: `bad-${index}`, deploymentId: `d_${index}`, ...wrong });
    plane.deployments.add({ state: { case: "apply", value } });
  }
  for (const [index, wrong] of Object.values(bad.sentinel).entries()) {
    const value = applySentinel({ k8sName: `bad-${index}`, sentinelId: `se_${index}`, ...wrong });
    plane.sentinels.add({ state: { case: "apply", value } });
  }
  for (const [index, wrong] of Object.values(bad.policy).entries()) {
    const value = applyPolicy({ k8sName: `bad-${index}`, ciliumNetworkPolicyId: `net_${index}`, ...wrong });
    plane.policies.add({ state: { case: "apply", value } });
  }
  const expected = Object.entries({
    deployments: Object.keys(bad.deployment),
    sentinels: Object.keys(bad.sentinel),
    cilium: Object.keys(bad.policy),
  });
  await eventually("all are rejected", async () => {
    const { objects } = await client.listObjects({ onlyTroubled: true });
    for (const [controller, fields] of expected) {
      const rejected = objects.filter((each) => each.controller === controller);
      assert.deepEqual(
        rejected.map(({ outcome }) => outcome),
        fields.map(() => Outcome.PARKED),
      );
      assert.deepEqual(
        rejected.map(({ fieldPath = "" }) => /^\w+/.exec(fieldPath)?.[0]).sort(),
        [...fields].sort(),
        controller,
      );
    }
  });
  for (const kind of [replicaSets, appsDeployments, ciliumNetworkPolicies])
    assert.deepEqual((await cluster.api.list(kind as typeof replicaSets, {}, never)).items, []);
});

test("every field of a status report arrives, and the calls are those of the original's agent", async (t) => {
  const { plane, cluster } = await createWorld(t);
  plane.deployments.add({ state: { case: "apply", value: deployment } });
  plane.sentinels.add({ state: { case: "apply", value: sentinel } });
  const instances = await eventually("two pods run", () => {
    const last = plane.deploymentReports.at(-1)?.change;
    assert.equal(last?.case, "update");
    assert.equal(last.value.k8sName, "field-two");
    assert.deepEqual(
      last.value.instances.map(({ status }) => status),
      [Status.RUNNING, Status.RUNNING],
    );
    return last.value.instances;
  });
  const { items } = await cluster.api.list(pods, { namespace: "field-one" }, never);
  assert.deepEqual(
    instances.map(({ k8sName, address, cpuMillicores, memoryMib }) => ({
      k8sName,
      address,
      cpuMillicores,
      memoryMib,
    })),
    items.map(({ metadata, status }) => ({
      k8sName: metadata?.name,
      address: `${status?.podIP?.replaceAll(/[.:]/g, "-")}.field-one.pod.cluster.local:1014`,
      cpuMillicores: 1009n,
      memoryMib: 1010n,
    })),
  );
  await eventually("the sentinel is reported", async () => {
    const last = plane.sentinelReports.at(-1);
    const gate = { namespace: "sentinel", name: "field-one" };
    const { availableReplicas = 0 } = (await cluster.api.get(appsDeployments, gate, {}, never))?.status ?? {};
    const health = availableReplicas > 0 ? Health.HEALTHY : Health.UNHEALTHY;
    assert.deepEqual(
      [last?.k8sName, last?.availableReplicas, last?.health],
      ["field-one", availableReplicas, health],
    );
  });

  // A stream that ends is opened again at the last version that was applied.
  for (const session of plane.server.sessions) session.destroy();
  await eventually("the streams are open again", () => {
    const cursors = (method: string) =>
      plane.calls
        .filter((call) => call.method === method)
        .map(({ message }) => (message as unknown as { versionLastSeen: bigint }).versionLastSeen);
    assert.deepEqual(cursors("WatchDeployments"), [0n, 1n]);
    assert.deepEqual(cursors("WatchSentinels"), [0n, 1n]);
    assert.deepEqual(cursors("WatchCiliumNetworkPolicies"), [0n, 0n]);
  });
  for (const { method, authorization, region: sent, message } of plane.calls) {
    assert.deepEqual([authorization, sent], ["Bearer t-1234567890", region], method);
    if ("region" in message && method.startsWith("Watch")) assert.equal(message.region, region, method);
  }
});

/** The fields that are set in a message and those in it, as `Message.field` without the package. */
function fieldsIn(message: ReflectMessage, into: Set<string>): void {
  for (const field of message.fields) {
    if (!message.isSet(field)) continue;
    into.add(`${message.desc.typeName.replace("ctrl.v1.", "")}.${field.name}`);
    const value: unknown = message.get(field);
    for (const one of isReflectList(value) ? value : [value]) if (isReflectMessage(one)) fieldsIn(one, into);
  }
}

function fieldsOfCalls(calls: readonly ArrivedCall[]): ReadonlySet<string> {
  const fields = new Set<string>();
  for (const { method, message } of calls) {
    const { input } = ClusterService.methods.find(({ name }) => name === method) ?? assert.fail(method);
    fieldsIn(reflect(input, message), fields);
  }
  return fields;
}

test("the agent's calls set every field of the original's requests", async (t) => {
  const { plane, cluster, agent, start } = await createWorld(t);
  plane.deployments.add({ state: { case: "apply", value: deployment } });
  plane.sentinels.add({ state: { case: "apply", value: sentinel } });
  plane.policies.add({ state: { case: "apply", value: policy } });
  await eventually("all are applied", async () => {
    const rule = { namespace: policy.k8sNamespace, name: policy.k8sName };
    assert.ok(await cluster.api.get(ciliumNetworkPolicies, rule, {}, never), "no policy");
    const last = plane.deploymentReports.at(-1)?.change;
    assert.equal(last?.case === "update" && last.value.instances.length, 2);
    assert.ok(plane.sentinelReports.length > 0, "no sentinel");
  });
  // A new process asks about what it finds in the cluster.
  await agent.stop();
  await start();
  const askedFor = (method: string) =>
    plane.calls.filter((call) => call.method === method).map(({ message }) => ({ ...message }) as object);
  await eventually("it has asked about them", () => {
    const [state] = askedFor("GetDesiredDeploymentState");
    assert.equal((state as { deploymentId?: string })?.deploymentId, "d_field6");
    const [gate] = askedFor("GetDesiredSentinelState");
    assert.equal((gate as { sentinelId?: string })?.sentinelId, "se_field5");
  });
  const { k8sNamespace, k8sName } = deployment;
  plane.deployments.add({ state: { case: "delete", value: { k8sNamespace, k8sName } } });
  await eventually("the end is reported", () => {
    assert.ok(plane.deploymentReports.some(({ change }) => change.case === "delete"));
  });
  for (const session of plane.server.sessions) session.destroy();
  const requests = [
    ...["Deployments", "Sentinels", "CiliumNetworkPolicies"].map((kind) => `Watch${kind}Request`),
    // Policies are asked about once a minute: the first pass may come before they are listed.
    ...["Deployment", "Sentinel"].map((kind) => `GetDesired${kind}StateRequest`),
    ...["", ".Update", ".Update.Instance", ".Delete"].map((part) => `ReportDeploymentStatusRequest${part}`),
    "ReportSentinelStatusRequest",
  ];
  const expected: string[] = [];
  for (const request of requests)
    for (const field of await fieldsOf(request)) expected.push(`${request}.${field}`);
  assert.equal(expected.length, 21);
  // Its pods count as available after 30 s; the test above compares the number with that of Kubernetes.
  expected.splice(expected.indexOf("ReportSentinelStatusRequest.available_replicas"), 1);
  await eventually("each field was set", () => {
    const set = fieldsOfCalls(plane.calls);
    assert.deepEqual(
      expected.filter((field) => !set.has(field)),
      [],
    );
  });
});
