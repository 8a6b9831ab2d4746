// `krane doctor` on a real API server with RBAC on, as the service account of the chart: it sees all of the agent's
// rights with exactly those rights, and names the one that is taken away.
import assert from "node:assert/strict";
import { after, before, beforeEach, type TestContext, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { readTextFile } from "../../src/cli/process/text-file.ts";
import type { Finding } from "../../src/doctor/finding.ts";
import { dev as region, serveControlPlane, token } from "../integration/server/served-control-plane.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights, type ServiceAccountAccess } from "../support/deployed-rights.ts";
import { eventually } from "../support/eventually.ts";
import { FakeIo } from "../support/fake-io.ts";

const cluster = clusterUnderTest();
let account: ServiceAccountAccess;

before(() => cluster.empty());
beforeEach(async () => {
  account = await installRights(cluster, ["agent", "registry", "secrets"]);
});
after(() => account.remove());

async function doctorOf(
  t: TestContext,
  path = account.kubeconfigPath,
): Promise<() => Promise<readonly Finding[]>> {
  const { running } = await serveControlPlane(t, "h2c");
  const config = `region = "${region}"
[control]
url = "${running?.url}"
token = "${token}"
[kubernetes]
kubeconfig = "${path}"
[registry]
url = "registry.example"
username = "robot"
password = "not-a-real-password"
[vault]
url = "http://127.0.0.1:1"
token = "of-a-vault-that-is-down"
`;
  return async () => {
    const io = new FakeIo({ "krane.toml": config, [path]: await readTextFile(path, never) });
    const code = await main(["doctor", "-c", "krane.toml", "-o", "json"], {}, io);
    const { findings } = JSON.parse(io.stdout.text) as { readonly findings: readonly Finding[] };
    assert.equal(code, 1, "the vault is down");
    return findings.filter(({ name }) => name !== "vault");
  };
}

const never = new AbortController().signal;

function stateOf(findings: readonly Finding[], name: string): string | undefined {
  return findings.find((each) => each.name === name)?.state;
}

test("with the chart's rights, and no others, everything that can be seen is ok", async (t) => {
  const findings = await (await doctorOf(t))();
  const troubles = findings.filter(({ state }) => state === "problem" || state === "warning");
  assert.deepEqual(troubles, []);
  for (const name of [
    "cluster",
    "cluster clock",
    "rights",
    "network policies",
    "token reviews",
    "control plane",
  ])
    assert.equal(stateOf(findings, name), "ok", name);
  // The agent may not look at these, and the doctor says so instead of taking them for missing.
  assert.equal(stateOf(findings, "RuntimeClass gvisor"), "skipped");
  assert.equal(stateOf(findings, "namespace sentinel"), "skipped");
  assert.equal(stateOf(findings, "admission policy"), "skipped");
});

test("with rights of one's own, a missing admission policy is a warning", async (t) => {
  const doctor = await doctorOf(t, cluster.kubeconfigPath);
  const state = async () => stateOf(await doctor(), "admission policy");
  assert.equal(await state(), "ok");
  const name = "krane-agent.krane.unkey.com";
  await cluster.kubectl(["delete", "validatingadmissionpolicybinding", name]);
  assert.equal(await state(), "warning");
  await cluster.kubectl(["delete", "validatingadmissionpolicy", name]);
  assert.equal(await state(), "warning");
});

test("one verb less is one problem, which names the verb and the rule that gives it back", async (t) => {
  const doctor = await doctorOf(t);
  const path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/krane";
  const { body } = await cluster.request({ path });
  const { rules } = body as { rules: { resources: string[]; verbs: string[] }[] };
  const index = rules.findIndex(({ resources }) => resources.includes("replicasets"));
  const verbs = rules[index]?.verbs.filter((verb) => verb !== "patch");
  const patch = JSON.stringify([{ op: "replace", path: `/rules/${index}/verbs`, value: verbs }]);
  await cluster.kubectl(["patch", "clusterrole", "krane", "--type=json", "-p", patch]);

  const [missing, ...others] = await eventually("the API server knows the new role", async () => {
    const found = (await doctor()).filter(({ state }) => state === "problem" || state === "warning");
    assert.notEqual(found.length, 0);
    return found;
  });
  assert.deepEqual(others, []);
  assert.equal(missing?.name, "rights");
  assert.match(missing.finding, /^krane may not patch replicasets\.apps in all namespaces: /);
  assert.match(missing.remedy, /{"apiGroups":\["apps"\],"resources":\["replicasets"\],"verbs":\["patch"\]}/);
});

test("a token that the API server does not know is one problem", async (t) => {
  const doctor = await doctorOf(t);
  await cluster.kubectl(["-n", "krane", "delete", "serviceaccount", "krane"]);
  const found = await eventually(
    "the API server has forgotten the account",
    async () => {
      const troubles = (await doctor()).filter(({ state }) => state === "problem" || state === "warning");
      // It may forget between two questions, and then the first of them was well.
      assert.ok(
        troubles.some(({ name }) => name === "cluster"),
        "not yet",
      );
      return troubles;
    },
    { deadlineMs: 30_000 },
  );
  assert.deepEqual(
    found.map(({ name }) => name),
    ["cluster"],
  );
  assert.match(found[0]?.remedy ?? "", /service account/);
});
