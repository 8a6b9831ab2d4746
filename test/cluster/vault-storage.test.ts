// The vault's storage on a real S3 server. It needs no Kubernetes, but the same Go.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Secret } from "../../src/config/secret.ts";
import type { SecretSource } from "../../src/config/secret-source.ts";
import { createS3Storage } from "../../src/vault/storage/s3-storage.ts";
import { VaultError } from "../../src/vault/vault-error.ts";
import { resolveGoTool, s3Server } from "../../tools/go-tool.ts";
import { defineStorageContract } from "../integration/vault/storage-contract.ts";
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

test("S3: a bucket that is not there is said, with what to do", { skip: skip ?? false }, async (t) => {
  const storage = storageOn("no-such-bucket");
  t.after(() => storage.close());
  const said = isUnavailable(/no such bucket; create it/);
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
