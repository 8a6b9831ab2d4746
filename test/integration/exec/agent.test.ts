// From the control plane to the program: a secret is encrypted in a vault, goes through the control plane into a
// pod as it is, and comes back in clear through the agent's own port to whoever stands before the program.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createVault } from "../../../src/vault/create-vault.ts";
import { applyDeployment, utf8 } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { SecretSeekers } from "../../support/secret-seekers.ts";
import { createAgentWorld, parse, region } from "../agent/agent-world.ts";
import { readerCommand, readerNames, start, tellEnvironment } from "./secrets-pod.ts";

const never = new AbortController().signal;
const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";

let krane: Awaited<ReturnType<typeof buildKrane>>;
before(async () => {
  krane = await buildKrane();
});
after(() => krane.remove());

/** What its container is started with, as the kubelet would. */
function variablesOf(pod: Pod): Record<string, string> {
  const env = pod.spec?.containers[0]?.env ?? [];
  return Object.fromEntries(env.map(({ name, value = "" }) => [name, value]));
}

test("a program in a pod of a deployment gets what was encrypted for it, through the agent", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true }));
  const vaultToml = `[vault]\nmaster_keys = ["${masterKey}"]\n[vault.file]\npath = "${join(folder, "keys")}"\n`;
  const { vault: config } = parse(
    `region = "${region}"\n[control]\nurl = "http://localhost"\ntoken = "t"\n${vaultToml}`,
  );
  const deps = {
    clock: createSystemClock(),
    log: createQuietLog(),
    readTextFile: () => Promise.reject(new Error("no file is needed")),
  };
  const vault = (await createVault(config, deps, never)) ?? assert.fail("there is no vault");
  t.after(() => vault.close());
  const data = "s3cret\nwith a second line";
  const { encrypted } = await vault.encrypt({ keyring: "env_1a2B3c4D", data, context: "PASSWORD" }, never);

  const world = await createAgentWorld(t);
  const agent = await world.startAgent(vaultToml);
  const blob = utf8(JSON.stringify({ secrets: { PASSWORD: encrypted } }));
  await world.admin.setDeployment(region, applyDeployment({ encryptedEnvironmentVariables: blob }));
  const seekers = new SecretSeekers(world.cluster.api, "acme");
  const pod = await seekers.podOf("d_1a2B3c4D");
  const tokenPath = join(folder, "token");
  await writeFile(tokenPath, await seekers.tokenOf(pod));
  const env = {
    PATH: process.env["PATH"] ?? "",
    ...variablesOf(pod),
    UNKEY_TOKEN_PATH: tokenPath,
    UNKEY_PROVIDER_ENDPOINT: agent.url,
  };
  for (const reader of readerNames) {
    const { argv, env: more } = readerCommand(reader, krane.program);
    const { code, stdout, stderr } = await start(t, [...argv, ...tellEnvironment], { ...env, ...more }).exit;
    assert.deepEqual([code, stderr], [0, ""], reader);
    assert.equal(JSON.parse(stdout)["PASSWORD"], data, reader);
  }
});

test("without a vault the agent serves no secrets, and the reader says what is missing", async (t) => {
  const world = await createAgentWorld(t);
  const agent = await world.startAgent();
  const path = `${agent.url}/krane.v1.SecretsService/DecryptSecretsBlob`;
  await eventually("it answers", async () =>
    assert.equal((await fetchHttp1(path, { method: "POST" })).status, 404),
  );
  const folder = await mkdtemp(join(tmpdir(), "krane-exec-"));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "token"), "a.b.c");
  const env = {
    PATH: process.env["PATH"] ?? "",
    UNKEY_ENCRYPTED_ENV: Buffer.from('{"secrets":{"A":"x"}}').toString("base64"),
    UNKEY_PROVIDER_ENDPOINT: agent.url,
    UNKEY_TOKEN_PATH: join(folder, "token"),
    UNKEY_DEPLOYMENT_ID: "d_1",
    UNKEY_ENVIRONMENT_ID: "env_1",
  };
  for (const reader of readerNames) {
    const { argv } = readerCommand(reader, krane.program);
    const { code, stderr } = await start(t, [...argv, "true"], env).exit;
    assert.equal(code, 1, reader);
    assert.match(stderr, /configure a vault for krane/, reader);
  }
});
