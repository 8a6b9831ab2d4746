import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { createQuietLog } from "../../../test/support/quiet-log.ts";
import { createTestVault, secretOf } from "../../../test/support/vault-fixture.ts";
import { createSystemClock } from "../../concurrency/clock.ts";
import { routeByPath } from "../../http/http-handler.ts";
import { startHttpPort } from "../../http/http-port.ts";
import { rpcRoutes } from "../../services/rpc-routes.ts";
import { vaultServiceRoutes } from "../../services/vault-service.ts";
import { createMetrics } from "../../telemetry/metrics.ts";
import { generateMasterKey } from "../../vault/master-keys.ts";
import { createMemoryStorage } from "../../vault/storage/memory-storage.ts";
import type { Vault } from "../../vault/vault.ts";
import { main } from "../main.ts";

const region = "local.dev";
const environment = "env_1a2B3c4D";
const vaultToken = "of-the-vault-of-the-test";
const plain = "CANARY-VALUE";
const { signal } = new AbortController();

async function serveVault(t: TestContext, vault: Vault): Promise<string> {
  const deps = {
    clock: createSystemClock(),
    log: createQuietLog(),
    readTextFile: () => assert.fail("no file"),
  };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const routes = rpcRoutes(vaultServiceRoutes(vault, secretOf(vaultToken), { ...deps, metrics }));
  const port = await startHttpPort(
    routeByPath(routes),
    { port: 0, setting: "rpc_port", tls: undefined },
    deps,
    signal,
  );
  t.after(() => port.stop(AbortSignal.abort()));
  return `http://127.0.0.1:${port.port}`;
}

interface World {
  readonly server: AdminServer;
  readonly vault: Vault;
  krane(
    argv: readonly string[],
    outside?: Partial<FakeIo & { input: string; typed: string }>,
  ): Promise<{
    readonly code: number;
    readonly stdout: string;
    readonly stderr: string;
  }>;
}

async function createWorld(
  t: TestContext,
  { withVault = true, vaultLines = `token = "${vaultToken}"`, files = {} } = {},
): Promise<World> {
  const server = await startAdminServer();
  t.after(() => server.stop());
  const described = { region, id: environment, workspaceId: "ws_1", projectId: "proj_1" };
  await server.client().applyEnvironment(described);
  const vault = createTestVault({ storage: createMemoryStorage(), keys: [generateMasterKey(0)] });
  const vaultUrl = await serveVault(t, vault);
  const context = `current = "test"
[contexts.test]
server = "${server.url}"
region = "${region}"
token = "${server.tokens.readWrite}"
${withVault ? `[contexts.test.vault]\nurl = "${vaultUrl}"\n${vaultLines}\n` : ""}`;
  return {
    server,
    vault,
    async krane(argv, { input, typed } = {}) {
      const io = Object.assign(new FakeIo({ "/k/cli.toml": context, ...files }), {
        askHidden: async () => typed,
        readInput: async () => input ?? assert.fail("standard input was read"),
      });
      const code = await main(argv, { KRANE_CONFIG: "/k/cli.toml" }, io);
      return { code, stdout: io.stdout.text, stderr: io.stderr.text };
    },
  };
}

async function stored({ server, vault }: World, name: string): Promise<string | undefined> {
  const encrypted = (await server.store.environment(region, environment))?.secrets.get(name);
  if (encrypted === undefined) return undefined;
  assert.ok(!encrypted.includes(plain));
  return vault.decrypt({ keyring: environment, encrypted, context: name }, signal);
}

test("a value from standard input or a prompt is encrypted for its environment and name before it is sent", async (t) => {
  const world = await createWorld(t);
  const { krane } = world;
  const set = await krane(["secrets", "set", environment, "DB_PASSWORD"], { input: `${plain}\n` });
  assert.equal(set.code, 0, set.stderr);
  assert.equal(set.stdout, `secret DB_PASSWORD of environment ${environment} is set\n`);
  assert.match(set.stderr, /this applies to new deployments/);
  assert.equal(await stored(world, "DB_PASSWORD"), plain);
  await krane(["secrets", "set", environment, "KEY", "--exact"], { input: `${plain}\n` });
  assert.equal(await stored(world, "KEY"), `${plain}\n`);
  await krane(["secrets", "set", environment, "TYPED"], { typed: "by hand" });
  assert.equal(await stored(world, "TYPED"), "by hand");

  assert.equal((await krane(["secrets", "list", environment])).stdout, "NAME\nDB_PASSWORD\nKEY\nTYPED\n");
  const listed = await krane(["secrets", "list", environment, "-o", "json"]);
  assert.deepEqual(JSON.parse(listed.stdout).secretNames, ["DB_PASSWORD", "KEY", "TYPED"]);
  assert.equal((await krane(["secrets", "unset", environment, "KEY"])).code, 0);
  assert.equal(await stored(world, "KEY"), undefined);
  assert.equal((await krane(["secrets", "unset", environment, "KEY"])).code, 3);
});

test("what cannot be kept is refused before anybody is asked for it", async (t) => {
  const { krane } = await createWorld(t);
  assert.equal((await krane(["secrets", "set", environment, "NOT A NAME"])).code, 64);
  assert.equal((await krane(["secrets", "set", environment, "UNKEY_TOKEN_PATH"])).code, 64);
  const empty = await krane(["secrets", "set", environment, "EMPTY"], { input: "\n" });
  assert.deepEqual([empty.code, empty.stderr.includes("the value is empty")], [64, true]);
  const asArgument = await krane(["secrets", "set", environment, "NAME", plain]);
  assert.equal(asArgument.code, 64);
  assert.equal((await krane(["secrets", "list", "env_nobody"])).code, 3);
});

test("a mistyped environment is not made known by its first secret, and nobody is asked for it", async (t) => {
  const { krane, server } = await createWorld(t);
  const { code, stderr } = await krane(["secrets", "set", "env_typo", "NAME"]);
  assert.equal(code, 3, stderr);
  assert.match(
    stderr,
    /no environment env_typo in region local\.dev; there are env_1a2B3c4D; .*kind Environment/,
  );
  assert.equal(await server.store.environment(region, "env_typo"), undefined);
});

test("a vault that is missing, refuses the token or does not answer is told apart, without the value", async (t) => {
  const missing = await (await createWorld(t, { withVault: false })).krane([
    "secrets",
    "set",
    environment,
    "NAME",
  ]);
  assert.equal(missing.code, 78);
  assert.match(missing.stderr, /set url and token_file in \[contexts\.test\.vault\]/);
  const { krane } = await createWorld(t, { vaultLines: 'token = "another-token-altogether"' });
  const refused = await krane(["secrets", "set", environment, "NAME"], { input: plain });
  assert.equal(refused.code, 77, refused.stderr);
  assert.match(refused.stderr, /check token_file of the vault/);
  assert.doesNotMatch(refused.stderr, /vault: vault:/);
  for (const { stdout, stderr } of [missing, refused]) assert.doesNotMatch(stdout + stderr, /CANARY/);
});

test("the files that a context names for its vault are read, and one that cannot be is named before anybody is asked", async (t) => {
  const set = ["secrets", "set", environment, "NAME"];
  const good = await createWorld(t, {
    vaultLines: 'token_file = "vault-token"',
    files: { "/k/vault-token": `${vaultToken}\n` },
  });
  const done = await good.krane(set, { input: plain });
  assert.equal(done.code, 0, done.stderr);
  for (const key of ["token_file", "ca_file"]) {
    const { krane } = await createWorld(t, { vaultLines: `${key} = "gone"` });
    const { code, stderr } = await krane(set);
    assert.equal(code, 78, stderr);
    assert.match(stderr, new RegExp(`^krane: contexts\\.test\\.vault\\.${key}: cannot read /k/gone`));
  }
});

test("a vault of its own configuration is used where one is named", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "krane-secrets-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const { server } = await createWorld(t, { withVault: false });
  const config = `[vault]\nmaster_keys = ["${generateMasterKey(0)}"]\n[vault.file]\npath = "${folder}"\n`;
  const io = Object.assign(new FakeIo({ "vault.toml": config }), { readInput: async () => plain });
  const env = { KRANE_SERVER: server.url, KRANE_TOKEN: server.tokens.readWrite, KRANE_REGION: region };
  const code = await main(["secrets", "set", environment, "NAME", "-c", "vault.toml"], env, io);
  assert.equal(code, 0, io.stderr.text);
  const environments = await server.store.environment(region, environment);
  assert.deepEqual([...(environments?.secrets.keys() ?? [])], ["NAME"]);
});
