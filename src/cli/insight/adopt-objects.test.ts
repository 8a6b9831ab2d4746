import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { main } from "../main.ts";

const region = "local.dev";
let server: AdminServer;
before(async () => {
  server = await startAdminServer({ regions: [region, "silent.dev"] });
});
after(() => server.stop());

const reason = 'it is sealed with the unknown key "0ld"';
const web = {
  controller: "deployments",
  kind: "apps/ReplicaSet",
  namespace: "acme",
  name: "web",
  uid: "u1",
  id: "d_web",
  reason,
  adoptable: true,
};
const policy = { ...web, kind: "cilium.io/CiliumNetworkPolicy", name: "allow", id: "env_1" };
const old = { ...web, name: "old", id: "", adoptable: false, obstacle: "not in desired state" };
const pending = { ...web, namespace: "demo", name: "api", id: "d_api", pending: true };

/** Resolves with what the agent is told to adopt. */
async function report(...strangers: readonly object[]): Promise<readonly string[]> {
  const state = { instanceId: "ins_1", version: "1" };
  const { adoptions } = await server
    .agentClient(region)
    .reportAgentState({ state, strangers: [...strangers] });
  return adoptions.map(({ kind, namespace, name, uid }) => `${kind} ${namespace}/${name} ${uid}`);
}

async function run(argv: readonly string[], answer?: string, env = {}) {
  const questions: string[] = [];
  const ask = async (question: string) => {
    questions.push(question);
    return answer;
  };
  const io = Object.assign(new FakeIo(), { ask });
  const { readWrite } = server.tokens;
  const access = { KRANE_SERVER: server.url, KRANE_TOKEN: readWrite, KRANE_REGION: region };
  const code = await main(["adopt", ...argv], { ...access, ...env }, io);
  return { code, questions, stdout: io.stdout.text, stderr: io.stderr.text };
}

test("shows what it will do and why, asks, and takes anything but yes for no", async () => {
  await report(web, policy, old, pending);
  const no = await run([], "");
  assert.deepEqual([no.code, no.stderr], [1, "nothing was adopted\n"]);
  assert.deepEqual(no.questions, [
    "Adopt 2 objects in local.dev? If another krane is running with this key or for that region, stop it first. [y/N] ",
  ]);
  assert.equal(
    no.stdout,
    `KIND                  OBJECT       ID      ACTION                             REASON
ReplicaSet            acme/web     d_web   adopt                              ${reason}
CiliumNetworkPolicy   acme/allow   env_1   adopt                              ${reason}
ReplicaSet            demo/api     d_api   is being adopted                   ${reason}
ReplicaSet            acme/old             not in desired state, left alone   ${reason}
`,
  );
  assert.equal((await run([])).code, 64, "nobody to ask");
  assert.deepEqual(await report(web, policy, old, pending), []);
});

test("adopts what was shown, for its uid only", async () => {
  await report(web, policy, old);
  const { code, stdout, stderr } = await run([], "y");
  assert.equal(code, 0);
  assert.match(stdout, /^2 objects will be adopted$/m);
  assert.match(stderr, /^the agent gets it within half a minute/);
  const told = await report(web, { ...policy, uid: "u2" }, old);
  assert.deepEqual(told, ["apps/ReplicaSet acme/web u1"], "the policy was created again");
  assert.deepEqual(await report(), []);
  assert.deepEqual(await report(old), []);
});

test("--dry-run changes nothing and asks nothing", async () => {
  await report(web, old);
  const { code, stdout, questions } = await run(["--dry-run"], "y");
  assert.deepEqual([code, questions], [0, []]);
  assert.match(stdout, /acme\/web +d_web +adopt/);
  assert.deepEqual(await report(web, old), []);
});

test("can be limited to a kind, a namespace and names", async () => {
  const other = { ...web, namespace: "demo", id: "d_other" };
  const all = [web, policy, other, old];
  const chosen = async (...argv: readonly string[]) => {
    await report();
    await report(...all);
    const { code, stdout } = await run([...argv, "--yes", "-o", "json"]);
    assert.equal(code, 0);
    const { adopted } = JSON.parse(stdout) as { adopted: { namespace: string; name: string }[] };
    return adopted.map(({ namespace, name }) => `${namespace}/${name}`);
  };
  assert.deepEqual(await chosen("--kind", "replicaset"), ["acme/web", "demo/web"]);
  assert.deepEqual(await chosen("--kind", "apps/ReplicaSet", "--namespace", "demo"), ["demo/web"]);
  assert.deepEqual(await chosen("web"), ["acme/web", "demo/web"]);
  assert.deepEqual(await chosen("demo/web", "env_1"), ["acme/allow", "demo/web"]);
  assert.deepEqual(await chosen("old"), [], "never, even by name");
  const missing = await run(["wbe", "--yes"]);
  assert.deepEqual([missing.code, missing.stdout], [3, ""]);
  assert.match(missing.stderr, /no object of another krane in region local\.dev is named wbe/);
});

test("prints everything for programs, and is done where nothing is to be adopted", async () => {
  await report(old);
  const { stdout, code } = await run(["-o", "json"]);
  const { strangers, adopted, notListed } = JSON.parse(stdout);
  assert.deepEqual([code, adopted, notListed], [0, [], []]);
  assert.deepEqual([strangers[0].uid, strangers[0].obstacle], ["u1", "not in desired state"]);
  await report();
  const none = await run([]);
  assert.deepEqual([none.code, none.stdout], [0, ""]);
  assert.equal(none.stderr, "no objects of another krane in region local.dev\n");
});

test("fails where no agent has reported, the region is unknown, or the token may only read", async () => {
  const silent = await run([], "y", { KRANE_REGION: "silent.dev" });
  assert.equal(silent.code, 1);
  assert.match(silent.stderr, /no agent of region silent\.dev has reported yet/);
  assert.equal((await run([], "y", { KRANE_REGION: "none.dev" })).code, 3);
  await report(web);
  const reader = { KRANE_TOKEN: server.tokens.readOnly };
  assert.equal((await run(["--dry-run"], "y", reader)).code, 0);
  assert.equal((await run(["--yes"], "y", reader)).code, 77);
});
