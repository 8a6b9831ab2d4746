// docs/operations/install.md, typed: the blocks that are marked there run one after the other, with the pinned helm and
// kubectl, against a real Kubernetes.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { helm, resolveGoTool } from "../../tools/go-tool.ts";
import { loadClusterwideDefinition } from "../support/cluster/published-definitions.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { eventually } from "../support/eventually.ts";
import { buildKrane } from "../support/krane-process.ts";
import { projectRoot, readProjectFile } from "../support/project-files.ts";

const cluster = clusterUnderTest();
const never = new AbortController().signal;
const binary = await resolveGoTool(helm, process.env, { report: (line) => console.error(line) }, never);
const definition = await loadClusterwideDefinition();
const skip =
  (binary.kind === "missing" && `helm: ${binary.what}`) || ("missing" in definition && definition.missing);

before(() => cluster.empty());
after(() => cluster.empty());

test("the install goes as the page says, and goes away again", { skip, timeout: 180_000 }, async (t) => {
  const input = "text" in definition ? definition.text : assert.fail("it was skipped");
  const helmPath = binary.kind === "ready" ? binary.path : assert.fail("it was skipped");
  await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input });
  t.after(() => cluster.kubectl(["delete", "-f", "-", "--ignore-not-found"], { input }));
  const folder = await mkdtemp(join(tmpdir(), "krane-install-"));
  const krane = await buildKrane();
  t.after(async () => {
    await krane.remove();
    await rm(folder, { recursive: true });
  });
  await symlink(join(projectRoot, "deploy"), join(folder, "deploy"));
  const path = [dirname(helmPath), cluster.binariesDir, dirname(krane.program), process.env["PATH"]];
  const env = { PATH: path.join(":"), HOME: folder, USER: "ada", KUBECONFIG: cluster.kubeconfigPath };
  const type = (script: string) =>
    promisify(execFile)("sh", ["-euc", script], { cwd: folder, env, maxBuffer: 2 ** 24 });

  const page = readProjectFile("docs/operations/install.md");
  const blocks = [...page.matchAll(/<!-- run -->\n```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  assert.equal(blocks.length, 3);
  const uninstall = /^helm uninstall .*$/m.exec(page)?.[0] ?? assert.fail("no uninstall on the page");
  await eventually("the definition is known", () => type(blocks[0] ?? ""));
  for (const block of blocks.slice(1)) await type(block);

  const names = async (what: string) =>
    (await cluster.kubectl(["-n", "krane", "get", what, "-o", "name"])).trim().split("\n").sort();
  assert.deepEqual(await names("deployments"), [
    "deployment.apps/krane",
    "deployment.apps/krane-server",
    "deployment.apps/krane-vault",
  ]);
  const pods = (await cluster.kubectl(["-n", "krane", "get", "deployment", "krane", "-o", "json"])).trim();
  const { containers, volumes } = JSON.parse(pods).spec.template.spec;
  assert.equal(containers[0].image, "registry.example/krane:0.1.0");
  const secret = volumes.find(({ name }: { readonly name: string }) => name === "secrets").secret.secretName;
  const held = JSON.parse(await cluster.kubectl(["-n", "krane", "get", "secret", secret, "-o", "json"]));
  assert.deepEqual(Object.keys(held.data).sort(), ["agent-token", "control-token", "vault-token"]);

  await type(uninstall);
  assert.deepEqual(await names("persistentvolumeclaims"), ["persistentvolumeclaim/krane-vault"]);
  await cluster.kubectl(["get", "namespace", "sentinel"]);
  const kinds = "clusterroles,validatingadmissionpolicies,validatingadmissionpolicybindings";
  assert.equal(await cluster.kubectl(["get", kinds, "-l", "app.kubernetes.io/name=krane"]), "");
});
