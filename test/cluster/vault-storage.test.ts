// The vault's storage on a real S3 server. It needs no Kubernetes, but the same Go.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Secret } from "../../src/config/secret.ts";
import type { SecretSource } from "../../src/config/secret-source.ts";
import { createS3Storage } from "../../src/vault/storage/s3-storage.ts";
import { VaultError } from "../../src/vault/vault-error.ts";
import { resolveGoTool, s3Server } from "../../tools/go-tool.ts";
import { defineStorageContract } from "../integration/vault/storage-contract.ts";
import { buildKrane, startKrane } from "../support/krane-process.ts";
import { startS3Server } from "../support/s3-server.ts";

const { signal } = new AbortController();
const binary = await resolveGoTool(s3Server, process.env, { report: (line) => console.error(line) }, signal);
const skip = binary.kind === "missing" ? `no S3 server: ${binary.what}` : undefined;
const server = binary.kind === "ready" ? await startS3Server(binary.path) : undefined;
after(() => server?.stop());

const secretOf = (text: string): SecretSource => ({
  current: async () => new Secret(text),
  refresh: () => undefined,
});

function storageOn(bucket: string, accessKeySecret = secretOf(server?.accessKeySecret ?? "")) {
  const { url = "", accessKeyId = "" } = server ?? {};
  return createS3Storage({ url, bucket, accessKeyId, accessKeySecret });
}

const makeBucket = async () => (await server?.createBucket()) ?? "";

defineStorageContract({
  name: "S3",
  skip,
  async makePlace(t) {
    const bucket = await makeBucket();
    return {
      open() {
        const storage = storageOn(bucket);
        t.after(() => storage.close());
        return storage;
      },
    };
  },
});

const isUnavailable = (text: RegExp) => (error: unknown) =>
  error instanceof VaultError && error.code === "unavailable" && text.test(error.message);

test("S3: more objects than fit on one page are listed, every one once", {
  skip: skip ?? false,
}, async (t) => {
  const storage = storageOn(await makeBucket());
  t.after(() => storage.close());
  const names = Array.from(
    { length: 1_005 },
    (_, index) => `keyring/env_${index % 7}/dek_${100_000_000 + index}`,
  );
  for (let at = 0; at < names.length; at += 50)
    await Promise.all(names.slice(at, at + 50).map((name) => storage.create(name, Uint8Array.of(1), signal)));
  const seen: string[] = [];
  for await (const name of storage.list("keyring/", signal)) seen.push(name);
  assert.deepEqual(seen.sort(), names.sort());
});

test("S3: a missing bucket is reported, with what to do", { skip: skip ?? false }, async (t) => {
  const storage = storageOn("no-such-bucket");
  t.after(() => storage.close());
  const said = isUnavailable(/the bucket does not exist; create it/);
  await assert.rejects(storage.read("keyring/env_1/LATEST", signal), said);
  await assert.rejects(storage.create("keyring/env_1/LATEST", Uint8Array.of(1), signal), said);
});

test("S3: a refused key is an outage, never an absence, and a replaced one is used", {
  skip: skip ?? false,
}, async (t) => {
  let current = "not-the-secret";
  const source: SecretSource = { current: async () => new Secret(current), refresh: () => undefined };
  const storage = storageOn(await makeBucket(), source);
  t.after(() => storage.close());
  await assert.rejects(storage.read("keyring/env_1/LATEST", signal), (error) => {
    assert.ok(isUnavailable(/cannot read/)(error));
    assert.doesNotMatch(String(error), /not-the-secret/);
    return true;
  });
  current = server?.accessKeySecret ?? "";
  assert.equal(await storage.read("keyring/env_1/LATEST", signal), undefined);
});

test("S3: the program as it ships keeps its keys there", { skip: skip ?? false }, async (t) => {
  const { program, remove } = await buildKrane();
  t.after(remove);
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true }));
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await startKrane(t, program, args).exit;
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const write = async (name: string, content: string) => {
    const path = join(folder, name);
    await writeFile(path, content, { mode: 0o600 });
    return path;
  };
  const { url = "", accessKeyId = "", accessKeySecret = "" } = server ?? {};
  const keysPath = await write("keys", await run("vault", "keygen"));
  const config = await write(
    "vault.toml",
    `[vault]
token = "of-the-vault"
master_keys_file = "${keysPath}"
[vault.s3]
url = "${url}"
bucket = "${await makeBucket()}"
access_key_id = "${accessKeyId}"
access_key_secret_file = "${await write("secret", accessKeySecret)}"
`,
  );
  const of = ["--config", config, "--keyring", "env_1", "--name", "DB"];
  const encrypted = await run("vault", "encrypt", ...of, "--in", await write("plain", "hunter2"));
  assert.equal(await run("vault", "decrypt", ...of, "--in", await write("encrypted", encrypted)), "hunter2");
});
