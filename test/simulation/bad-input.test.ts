// A message that cannot be right: whoever looks at the agent's status, its log or its metrics reads which field it is,
// and everything else goes on as if it had not come.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ApplyDeploymentSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { ObjectStatus_Outcome } from "../../src/gen/krane/v1/agent_pb.ts";
import { kinds } from "../../src/kinds/kinds.ts";
import { type applyDeployment, utf8 } from "../support/deployment-messages.ts";
import { createRecordedLog } from "../support/recorded-log.ts";
import { defaultOptions, SimulatedRegion } from "./simulated-region.ts";

const createDeploymentController = await kinds.deployment.loadController();

type Overrides = Parameters<typeof applyDeployment>[0];

// For every field a value that no deployment can have.
const mistakes: Readonly<Record<string, Overrides>> = {
  k8s_namespace: { k8sNamespace: "kube-system" },
  k8s_name: { k8sName: "No-Name" },
  workspace_id: { workspaceId: "" },
  project_id: { projectId: "no project" },
  environment_id: { environmentId: "env-" },
  deployment_id: { deploymentId: "d_1,d_2" },
  image: { image: "not an image" },
  replicas: { replicas: -1 },
  cpu_millicores: { cpuMillicores: 0n },
  memory_mib: { memoryMib: -1n },
  build_id: { buildId: "/1" },
  encrypted_environment_variables: { encryptedEnvironmentVariables: utf8("no JSON") },
  command: { command: [""] },
  port: { port: 70_000 },
  shutdown_signal: { shutdownSignal: "SIGHUP" },
  pull_secret: { pullSecret: "database" },
  env: { env: { PORT: "1" } },
  healthcheck: { healthcheck: utf8("{") },
};
const fields = Object.keys(mistakes);
const healthy = 20;

test("the table of mistakes has every field of the message", () => {
  assert.deepEqual([...fields].sort(), ApplyDeploymentSchema.fields.map(({ name }) => name).sort());
});

/** Between the healthy ones as many wrong ones as are asked for; ends when the cursor is behind all of them. */
async function run(wrong: readonly string[]) {
  const world = await SimulatedRegion.create();
  const ids = new Map<string, string>();
  for (let index = 0; index < healthy; index++) {
    await world.setDeployment(index, { replicas: 0 });
    const field = wrong[index];
    if (field === undefined) continue;
    const spec = { k8sName: `wrong-${index}`, deploymentId: `d_wrong_${index}`, ...mistakes[field] };
    await world.setDeployment(100 + index, spec);
    ids.set(field, spec.deploymentId);
  }
  const { log, lines } = createRecordedLog();
  const agent = world.createAgentOf("deployments", (deps) =>
    createDeploymentController({ ...defaultOptions, resyncMs: 0, replayMs: 0 }, { ...deps, log }),
  );
  await world.resolved(agent.controller.start());
  await world.until("the cursor is behind all", () => {
    return agent.controller.status().stream?.cursor === BigInt(healthy + wrong.length);
  });
  assert.equal((await world.replicaSets()).length, healthy);
  const troubled = agent.controller.objects({ onlyTroubled: true });
  const { parked } = agent.controller.status();
  const exposed = await world.metrics.render();
  await world.stop();
  return { ids, troubled, parked, lines, exposed, writes: agent.writes.length };
}

test("each field that is wrong is named in the status, in the log and counted, and costs the others nothing", async () => {
  const without = await run([]);
  const { ids, troubled, parked, lines, exposed, writes } = await run(fields);

  assert.equal(parked, fields.length);
  assert.match(
    exposed,
    new RegExp(`troubled_objects\\{controller="deployments",outcome="parked"\\} ${fields.length}\\n`),
  );
  for (const [field, id] of ids) {
    const object = troubled.find((one) => one.id === id) ?? assert.fail(`${field} is not shown`);
    assert.equal(object.outcome, ObjectStatus_Outcome.PARKED, field);
    assert.ok(object.fieldPath?.startsWith(field), `${field}: ${object.fieldPath}`);
    assert.ok(object.reason.startsWith(field), `${field}: ${object.reason}`);
    const told = lines.filter((line) => line["key"] === object.key);
    assert.deepEqual(
      told.map((line) => [line["level"], line["outcome"], line["reason"]]),
      [["warn", "parked", object.reason]],
      field,
    );
  }
  assert.deepEqual(without.lines, []);
  assert.equal(writes, without.writes);
});
