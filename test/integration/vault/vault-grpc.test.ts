// The vault's port as clients of other makers meet it: the service itself, the health check and the reflection.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { status } from "@grpc/grpc-js";
import { VaultService } from "../../../src/gen/vault/v1/service_pb.ts";
import { callWithCurl, unaryPaths } from "../../support/curl.ts";
import { eventually } from "../../support/eventually.ts";
import { grpcurlMissing, runGrpcurl } from "../../support/grpcurl.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { buildKrane, freePort, startKrane } from "../../support/krane-process.ts";
import { grpcClient } from "../scheduler/grpc-client.ts";

const token = "kvt_of_the_test";
const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";
const service = "vault.v1.VaultService";
const health = "grpc.health.v1.Health";

let krane: Awaited<ReturnType<typeof buildKrane>>;
before(async () => {
  krane = await buildKrane();
});
after(() => krane.remove());

async function serveVault(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const [config, port] = [join(folder, "vault.toml"), await freePort()];
  await writeFile(
    config,
    `rpc_port = ${port}
listen_host = "127.0.0.1"
[vault]
token = "${token}"
master_keys = ["${masterKey}"]
[vault.file]
path = "${join(folder, "keys")}"
[observability.metrics]
prometheus_port = 0
`,
  );
  startKrane(t, krane.program, ["vault", "serve", "--config", config]);
  const url = `http://127.0.0.1:${port}`;
  await eventually("the vault has started", async () => {
    assert.equal((await fetchHttp1(`${url}/health/startup`)).status, 200);
  });
  return url;
}

test("grpc-js encrypts and decrypts with the token, and asks for its health without", async (t) => {
  const url = await serveVault(t);
  const client = grpcClient(t, url, token);
  const sealed = await client.call(service, "Encrypt", { keyring: "env_1", data: "s3cret" });
  const opened = await client.call(service, "Decrypt", { keyring: "env_1", encrypted: sealed["encrypted"] });
  assert.equal(opened["plaintext"], "s3cret");
  const stranger = grpcClient(t, url);
  await assert.rejects(
    stranger.call(service, "Encrypt", { keyring: "env_1", data: "s3cret" }),
    (error) => error instanceof Error && "code" in error && error.code === status.UNAUTHENTICATED,
  );
  for (const name of ["", service])
    assert.deepEqual(await stranger.call(health, "Check", { service: name }), { status: "SERVING" });
});

test("grpcurl finds out by reflection what is served, and calls it", { skip: grpcurlMissing }, async (t) => {
  const url = await serveVault(t);
  assert.deepEqual((await runGrpcurl(url, [], "list")).split("\n"), [
    health,
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    service,
  ]);
  assert.deepEqual(JSON.parse(await runGrpcurl(url, [], `${health}/Check`)), { status: "SERVING" });
  const args = ["-H", `authorization: Bearer ${token}`, "-d", '{"keyring": "env_1", "data": "s3cret"}'];
  const { encrypted } = JSON.parse(await runGrpcurl(url, args, `${service}/Encrypt`));
  assert.ok(encrypted.length > 20);
});

test("curl makes every call, in JSON", async (t) => {
  const url = await serveVault(t);
  const made: string[] = [];
  const call = async (method: string, body: object) => {
    const path = `${service}/${method}`;
    made.push(path);
    const answer = await callWithCurl(url, path, { token, body });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return answer.body;
  };
  assert.ok("status" in (await call("Liveness", {})));
  const keyring = "env_1";
  const { encrypted } = await call("Encrypt", { keyring, data: "s3cret" });
  assert.deepEqual(await call("Decrypt", { keyring, encrypted }), { plaintext: "s3cret" });
  assert.ok("encrypted" in (await call("ReEncrypt", { keyring, encrypted })));
  assert.ok("items" in (await call("EncryptBulk", { keyring, items: { A: "s3cret" } })));
  const opened = await call("DecryptBulk", { keyring, items: { A: encrypted } });
  assert.deepEqual(opened, { items: { A: "s3cret" } });
  assert.deepEqual([...made].sort(), [...unaryPaths(VaultService)].sort());
});
