// krane on the real node, installed as docs/operations/install.md says: the marked blocks of the page are typed in a shell,
// with the address of a real PostgreSQL in place of the page's placeholder.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { access, chown, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { helm, resolveGoTool } from "../../../tools/go-tool.ts";
import { loadClusterwideDefinition } from "../cluster/published-definitions.ts";
import { clusterUnderTest, clusterVariable, type TestCluster } from "../cluster-under-test.ts";
import { containerUser } from "../container.ts";
import { eventually } from "../eventually.ts";
import { projectRoot, readProjectFile } from "../project-files.ts";

export interface InstalledKrane {
  readonly cluster: TestCluster;
  /** Types a line in a shell that has kubectl, helm and krane. Resolves with its standard output. */
  type(script: string): Promise<string>;
}

/**
 * Names a folder with krane as it was built before, instead of the one of this tree: bin/krane, deploy/ and the image
 * krane.tar. `make release` verifies its files so.
 */
export const installedVariable = "KRANE_TEST_INSTALLED";

const source = process.env[installedVariable] ?? projectRoot;
const never = new AbortController().signal;
const installDeadlineMs = 300_000;

/** Installs it if it is not there yet: test files share the node. */
export async function installedKrane(): Promise<InstalledKrane> {
  const cluster = clusterUnderTest();
  const folder = join(cluster.dir, "install");
  const type = await openShell(cluster, folder);
  const isInstalled = await access(join(folder, "done")).then(
    () => true,
    () => false,
  );
  if (!isInstalled) {
    await install(cluster, folder, type);
    await writeFile(join(folder, "done"), "");
  }
  return { cluster, type };
}

async function openShell(cluster: TestCluster, folder: string): Promise<InstalledKrane["type"]> {
  const binary = await resolveGoTool(helm, process.env, { report: (line) => console.error(line) }, never);
  assert.ok(binary.kind === "ready", "helm is missing");
  const path = [dirname(binary.path), cluster.binariesDir, join(source, "bin"), process.env["PATH"]];
  const env = { PATH: path.join(":"), HOME: folder, USER: "ada", KUBECONFIG: cluster.kubeconfigPath };
  await mkdir(folder, { recursive: true });
  return async (script) => {
    const options = { cwd: folder, env, maxBuffer: 2 ** 24 };
    const { stdout } = await promisify(execFile)("sh", ["-euc", script], options);
    return stdout;
  };
}

async function install(cluster: TestCluster, folder: string, type: InstalledKrane["type"]): Promise<void> {
  const { databaseUrl } = JSON.parse(await readFile(process.env[clusterVariable] ?? "", "utf8")) as {
    readonly databaseUrl: string;
  };
  await applyClusterwideDefinition(cluster);
  await provideVolume(cluster, join(folder, "vault-volume"));
  await symlink(join(source, "deploy"), join(folder, "deploy"));
  const page = readProjectFile("docs/operations/install.md");
  const placeholder = "postgres://krane:PASSWORD@postgres.example:5432/krane";
  assert.ok(page.includes(placeholder));
  const blocks = [...page.replace(placeholder, databaseUrl).matchAll(/<!-- run -->\n```sh\n([\s\S]*?)```/g)];
  for (const [, block = ""] of blocks) await type(block);
  await eventually(
    "all of krane is Ready",
    () => type("kubectl --namespace krane wait --for=condition=Ready --timeout=1s pod --all"),
    { deadlineMs: installDeadlineMs },
  );
  await openContext(type);
  for (const name of ["krane-server", "krane-vault"]) {
    const address = await type(addressOf(name));
    // Until the node has rules for a Service, a second or more after its pods are Ready, connections to it are refused.
    await eventually(`${name} answers`, async () => {
      await (await fetch(`http://${address}/health/live`)).text();
    });
  }
}

const addressOf = (service: string) =>
  `kubectl --namespace krane get service "${service}" --output 'jsonpath={.spec.clusterIP}:{.spec.ports[0].port}'`;

/** As the page does, but at the address of the Service, which processes in the box reach without a port-forward. */
async function openContext(type: InstalledKrane["type"]): Promise<void> {
  await type(`umask 077
mkdir -p ~/.config/krane
awk '{ print $3 }' secrets/server/admin-tokens > ~/.config/krane/admin-token
cp secrets/vault/token ~/.config/krane/vault-token
address() { ${addressOf("$1")}; }
cat > ~/.config/krane/config.toml <<END
current = "local"

[contexts.local]
server = "http://$(address krane-server)"
region = "local.dev"
token_file = "admin-token"

[contexts.local.vault]
url = "http://$(address krane-vault)"
token_file = "vault-token"
END
`);
}

/** The chart's policies for all namespaces need it. Nothing on this node enforces policies. */
async function applyClusterwideDefinition(cluster: TestCluster): Promise<void> {
  const definition = await loadClusterwideDefinition();
  assert.ok("text" in definition, "the clusterwide definition is missing");
  await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input: definition.text });
  await eventually("the definition is known", () =>
    cluster.kubectl([
      "wait",
      "--timeout=30s",
      "--for=condition=Established",
      "crd/ciliumclusterwidenetworkpolicies.cilium.io",
    ]),
  );
}

/** The volume that the vault's claim gets. Kubernetes does not change the owner of a folder of the node. */
async function provideVolume(cluster: TestCluster, path: string): Promise<void> {
  await mkdir(path);
  await chown(path, containerUser, containerUser);
  const volume = {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name: "vault" },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path } },
  };
  await cluster.kubectl(["apply", "-f", "-"], { input: JSON.stringify(volume) });
}
