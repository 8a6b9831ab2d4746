// VaultService on a real port, and the remote vault in front of it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import type { SecretSource } from "../../../src/config/secret-source.ts";
import { errorCatalogue } from "../../../src/errors/error-catalogue.ts";
import { routeByPath } from "../../../src/http/http-handler.ts";
import { startHttpPort } from "../../../src/http/http-port.ts";
import { rpcRoutes } from "../../../src/services/rpc-routes.ts";
import { vaultServiceRoutes } from "../../../src/services/vault-service.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { generateMasterKey } from "../../../src/vault/master-keys.ts";
import { createRemoteVault, type RemoteVaultOptions } from "../../../src/vault/remote-vault.ts";
import { createMemoryStorage } from "../../../src/vault/storage/memory-storage.ts";
import type { Vault } from "../../../src/vault/vault.ts";
import { VaultError, type VaultErrorCode } from "../../../src/vault/vault-error.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { createQuietLog } from "../../support/quiet-log.ts";
import { createTestVault, secretOf } from "../../support/vault-fixture.ts";

const { signal } = new AbortController();
const token = "of-the-test-CANARY-TOKEN";
const plainSecret = "CANARY-SECRET";

async function testFile(name: string): Promise<string> {
  return readFile(fileURLToPath(new URL(`../../../testdata/tls/${name}`, import.meta.url)), "utf8");
}

const freshVault = () => createTestVault({ storage: createMemoryStorage(), keys: [generateMasterKey(0)] });

interface ServeOptions {
  readonly vault?: Vault;
  readonly tls?: boolean;
  readonly accepts?: SecretSource;
}

async function serve(t: TestContext, { vault = freshVault(), tls = false, accepts }: ServeOptions = {}) {
  const deps = { clock: createSystemClock(), log: createQuietLog(), readTextFile: testFile };
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const routes = rpcRoutes(vaultServiceRoutes(vault, accepts ?? secretOf(token), { ...deps, metrics }));
  const files = tls ? { certFile: "first.cert.pem", keyFile: "first.key.pem" } : undefined;
  const port = await startHttpPort(
    routeByPath(routes),
    { port: 0, setting: "rpc_port", tls: files },
    deps,
    signal,
  );
  t.after(() => port.stop(AbortSignal.abort()));
  return { url: `${tls ? "https" : "http"}://localhost:${port.port}`, port };
}

function connect(t: TestContext, options: RemoteVaultOptions, clock = createSystemClock()) {
  const vault = createRemoteVault(options, { clock });
  t.after(() => vault.close());
  return vault;
}

/** Whatever fails, neither a secret nor a token may be in the error, however it is printed. */
function failsWith(code: VaultErrorCode) {
  return (error: unknown) => {
    assert.ok(error instanceof VaultError, inspect(error));
    assert.equal(error.code, code, error.message);
    const views = [inspect(error, { depth: 20, showHidden: true }), JSON.stringify(error), String(error)];
    for (const view of views) assert.doesNotMatch(view, /CANARY/);
    return true;
  };
}

describe("the remote vault", () => {
  for (const tls of [false, true])
    test(`does what the embedded one does, ${tls ? "with TLS and a CA of its own" : "in the clear"}`, async (t) => {
      const embedded = freshVault();
      const { url } = await serve(t, { vault: embedded, tls });
      const ca = tls ? await testFile("first.cert.pem") : undefined;
      const vault = connect(t, { url, ca, token: secretOf(token) });
      const keyring = "env_1";
      const { encrypted, keyId } = await vault.encrypt({ keyring, data: plainSecret, context: "A" }, signal);
      assert.match(keyId, /^dek_/);
      assert.equal(await vault.decrypt({ keyring, encrypted, context: "A" }, signal), plainSecret);
      assert.equal(await embedded.decrypt({ keyring, encrypted, context: "A" }, signal), plainSecret);
      await assert.rejects(
        vault.decrypt({ keyring, encrypted, context: "B" }, signal),
        failsWith("undecryptable"),
      );
      await assert.rejects(vault.decrypt({ keyring, encrypted }, signal), failsWith("undecryptable"));
      const again = await vault.reEncrypt({ keyring, encrypted, context: "A" }, signal);
      assert.notEqual(again.encrypted, encrypted);
      const plain = new Map([
        ["A", "1"],
        ["B", ""],
        ["constructor", "2"],
      ]);
      const closed = await vault.encryptBulk({ keyring, items: plain, bindItemNames: true }, signal);
      const items = new Map([...closed].map(([name, value]) => [name, value.encrypted]));
      assert.deepEqual(await vault.decryptBulk({ keyring, items }, signal), plain);
      items.set("B", items.get("A") ?? "");
      await assert.rejects(vault.decryptBulk({ keyring, items }, signal), failsWith("undecryptable"));
      await assert.rejects(vault.encrypt({ keyring: "../x", data: "x" }, signal), failsWith("invalid"));
    });

  test("with a certificate that it was not told to trust is not spoken to", async (t) => {
    const { url } = await serve(t, { tls: true });
    const vault = connect(t, { url, token: secretOf(token) });
    await assert.rejects(
      vault.encrypt({ keyring: "env_1", data: plainSecret }, signal),
      failsWith("unavailable"),
    );
  });

  test("reads the token again after it was rejected", async (t) => {
    const { url } = await serve(t);
    let stored = "old-CANARY-TOKEN";
    let held: string | undefined;
    const source: SecretSource = {
      async current() {
        held ??= stored;
        return new Secret(held);
      },
      refresh() {
        held = undefined;
      },
    };
    const vault = connect(t, { url, token: source });
    await assert.rejects(
      vault.encrypt({ keyring: "env_1", data: plainSecret }, signal),
      failsWith("unauthenticated"),
    );
    stored = token;
    assert.ok(await vault.encrypt({ keyring: "env_1", data: plainSecret }, signal));
  });

  test("that is down, hangs or talks nonsense fails in time, says nothing of the request, and is left alone", async (t) => {
    const clock = new FakeClock();
    const answers: Record<string, RequestListener> = {
      hang: () => undefined,
      nonsense: (_, response) => response.setHeader("content-type", "application/proto").end("nonsense"),
      quoting(request, response) {
        const quoted = `${request.headers.authorization} ${plainSecret}`;
        response.writeHead(500, { "content-type": "application/json" });
        response.end(JSON.stringify({ code: "internal", message: quoted }));
      },
      page: (_, response) => response.writeHead(404, { "content-type": "text/html" }).end("<h1>no</h1>"),
    };
    let answer = answers["page"];
    const server = createServer((request, response) => answer?.(request, response)).listen(0);
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const vault = connect(t, { url, token: secretOf(token) }, clock);
    const encrypt = () => vault.encrypt({ keyring: "env_1", data: plainSecret }, signal);
    for (const name of ["page", "quoting", "nonsense"]) {
      answer = answers[name];
      await assert.rejects(encrypt(), failsWith("internal"), name);
    }
    answer = answers["hang"];
    for (let failures = 0; failures < 5; failures++) {
      const arrived = once(server, "request");
      const ended = encrypt().catch((error: unknown) => error);
      await arrived;
      await clock.advance(10_000);
      failsWith("unavailable")(await ended);
    }
  });

  test("that keeps failing is asked no more for a minute", async (t) => {
    const clock = new FakeClock();
    let asked = 0;
    const server = createServer((_, response) => {
      asked += 1;
      response.writeHead(503).end();
    }).listen(0);
    t.after(() => server.close());
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const vault = connect(t, { url, token: secretOf(token) }, clock);
    const encrypt = () => vault.encrypt({ keyring: "env_1", data: plainSecret }, signal);
    for (let count = 0; count < 20; count++) await assert.rejects(encrypt(), failsWith("unavailable"));
    assert.equal(asked, 5);
    await clock.advance(60_000);
    await assert.rejects(encrypt(), failsWith("unavailable"));
    assert.equal(asked, 6);
  });

  test("does not stop asking because of values that cannot be decrypted", async (t) => {
    const { url } = await serve(t);
    const vault = connect(t, { url, token: secretOf(token) });
    for (let count = 0; count < 20; count++)
      await assert.rejects(
        vault.decrypt({ keyring: "env_1", encrypted: "AAAA" }, signal),
        failsWith("undecryptable"),
      );
    assert.ok(await vault.encrypt({ keyring: "env_1", data: "x" }, signal));
  });

  test("ends a call with its caller, and every call when it is closed", async (t) => {
    const server = createServer(() => undefined).listen(0);
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    await once(server, "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const vault = connect(t, { url, token: secretOf(token) });
    const leaving = new AbortController();
    const reason = new Error("gone");
    const arrived = once(server, "request");
    const left = vault.encrypt({ keyring: "env_1", data: "x" }, leaving.signal);
    left.catch(() => undefined);
    await arrived;
    leaving.abort(reason);
    await assert.rejects(left, reason);
    const cut = vault.encrypt({ keyring: "env_1", data: "x" }, signal);
    cut.catch(() => undefined);
    await once(server, "request");
    await vault.close();
    await assert.rejects(cut, failsWith("unavailable"));
  });
});

describe("VaultService", () => {
  const post = (url: string, method: string, body: unknown, bearer?: string) =>
    fetch(`${url}/vault.v1.VaultService/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(bearer === undefined ? {} : { authorization: bearer }),
      },
      body: JSON.stringify(body),
    }).then(async (response) => ({ status: response.status, body: (await response.json()) as unknown }));

  test("answers Liveness to everybody, and everything else only to who has the token", async (t) => {
    const { url } = await serve(t);
    assert.deepEqual(await post(url, "Liveness", {}), { status: 200, body: { status: "ok" } });
    for (const method of ["Encrypt", "Decrypt", "EncryptBulk", "DecryptBulk", "ReEncrypt"])
      for (const bearer of [undefined, "", "Bearer ", "Bearer wrong", token, `bearer ${token}`])
        assert.equal((await post(url, method, {}, bearer)).status, 401, `${method} ${bearer}`);
  });

  const failing = (code: VaultErrorCode): Vault => {
    const fail = async () => {
      throw new VaultError(code, "vault.s3: cannot read keyring/env_1/LATEST at 10.0.0.1");
    };
    return { encrypt: fail, decrypt: fail, encryptBulk: fail, decryptBulk: fail, reEncrypt: fail };
  };

  test("answers each failure with the RPC code that the catalogue of errors promises", async (t) => {
    for (const [code, { rpc }] of Object.entries(errorCatalogue.VaultError.codes)) {
      const { url } = await serve(t, { vault: failing(code as VaultErrorCode) });
      const { body } = await post(url, "Encrypt", { keyring: "env_1", data: "x" }, `Bearer ${token}`);
      assert.equal((body as { readonly code?: string }).code, rpc, code);
    }
  });

  test("does not tell a caller what went wrong inside", async (t) => {
    for (const [code, status] of [
      ["unavailable", 503],
      ["unusable_key", 500],
      ["internal", 500],
    ] as const) {
      const { url } = await serve(t, { vault: failing(code) });
      const answer = await post(url, "Encrypt", { keyring: "env_1", data: "x" }, `Bearer ${token}`);
      assert.equal(answer.status, status);
      assert.doesNotMatch(JSON.stringify(answer.body), /s3|10\.0\.0\.1|LATEST/);
    }
  });

  test("takes a new token without a restart", async (t) => {
    let current = token;
    const accepts: SecretSource = { current: async () => new Secret(current), refresh: () => undefined };
    const { url } = await serve(t, { accepts });
    current = "another";
    assert.equal(
      (await post(url, "Encrypt", { keyring: "env_1", data: "x" }, `Bearer ${token}`)).status,
      401,
    );
    assert.equal((await post(url, "Encrypt", { keyring: "env_1", data: "x" }, "Bearer another")).status, 200);
  });

  test("refuses a request that is larger than any bulk", async (t) => {
    const { url } = await serve(t);
    const data = "a".repeat(9 * 1024 * 1024);
    const { status } = await post(url, "Encrypt", { keyring: "env_1", data }, `Bearer ${token}`);
    assert.equal(status, 429);
  });
});
