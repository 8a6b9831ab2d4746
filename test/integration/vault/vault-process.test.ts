// The vault commands as a person runs them: the bundle, its input, its output, its signals.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { EncryptedDataEncryptionKeySchema } from "../../../src/gen/vault/v1/object_pb.ts";
import { createFileStorage } from "../../../src/vault/storage/file-storage.ts";
import { eventually } from "../../support/eventually.ts";
import { buildKrane, freePort, startKrane } from "../../support/krane-process.ts";
import { createTestVault } from "../../support/vault-fixture.ts";

const { signal } = new AbortController();
const secret = "CANARY-secret with spaces\n";
let krane: Awaited<ReturnType<typeof buildKrane>>;
before(async () => {
  krane = await buildKrane();
});
after(() => krane.remove());

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function run(args: readonly string[], input = ""): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      krane.program,
      args,
      { env: { PATH: process.env["PATH"] }, cwd: tmpdir() },
      (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
    child.stdin?.end(input);
  });
}

async function makeVault(t: TestContext, more = "") {
  const folder = await mkdtemp(join(tmpdir(), "krane-vault-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const keysPath = join(folder, "keys");
  const config = join(folder, "vault.toml");
  const data = join(folder, "data");
  await writeFile(keysPath, (await run(["vault", "keygen"])).stdout, { mode: 0o600 });
  await writeFile(
    config,
    `${more}\n[vault]\ntoken = "CANARY-token"\nmaster_keys_file = "${keysPath}"\n[vault.file]\npath = "${data}"\n`,
  );
  const keys = async () => (await readFile(keysPath, "utf8")).trim().split("\n");
  return { folder, keysPath, config, data, keys };
}

describe("krane vault", () => {
  test("encrypts what comes in and gives it back exactly, from a pipe and from a file", async (t) => {
    const { config, folder } = await makeVault(t);
    const of = ["--config", config, "--keyring", "env_1", "--name", "DB"];
    const encrypted = await run(["vault", "encrypt", ...of, "--exact"], secret);
    assert.equal(encrypted.code, 0, encrypted.stderr);
    assert.match(encrypted.stdout, /^[A-Za-z0-9+/=]+\n$/);
    const decrypted = await run(["vault", "decrypt", ...of], encrypted.stdout);
    assert.deepEqual(decrypted, { code: 0, stdout: secret, stderr: "" });
    const file = join(folder, "encrypted");
    await writeFile(file, encrypted.stdout);
    assert.equal((await run(["vault", "decrypt", ...of, "--in", file])).stdout, secret);
  });

  test("encrypts without one final newline, as secrets set does, unless --exact keeps it", async (t) => {
    const { config, folder } = await makeVault(t);
    const of = ["--config", config, "--keyring", "env_1"];
    const roundTrip = async (input: string, ...flags: readonly string[]) => {
      const file = join(folder, "value");
      await writeFile(file, input);
      const piped = await run(["vault", "encrypt", ...of, ...flags], input);
      const read = await run(["vault", "encrypt", ...of, ...flags, "--in", file]);
      const [one, other] = await Promise.all(
        [piped, read].map(async ({ stdout }) => (await run(["vault", "decrypt", ...of], stdout)).stdout),
      );
      assert.equal(one, other, "a pipe and a file give the same value");
      return one;
    };
    assert.equal(await roundTrip("value\n"), "value");
    assert.equal(await roundTrip("value\r\n"), "value");
    assert.equal(await roundTrip("two\nlines\n\n"), "two\nlines\n");
    assert.equal(await roundTrip(" value "), " value ");
    assert.equal(await roundTrip("value\n", "--exact"), "value\n");
  });

  test("says what is wrong and what to do, and never a value", async (t) => {
    const { config } = await makeVault(t);
    const of = ["--config", config, "--keyring", "env_1"];
    const { stdout: encrypted } = await run(["vault", "encrypt", ...of, "--name", "A"], secret);
    const cases: readonly (readonly [readonly string[], string, number, RegExp])[] = [
      [["decrypt", ...of, "--name", "B"], encrypted, 1, /cannot be decrypted with this keyring/],
      [["decrypt", ...of], secret, 1, /cannot be decrypted with this keyring/],
      [["encrypt", "--config", config, "--keyring", "../x"], secret, 1, /keyring: must be/],
      [["encrypt", "--config", config], secret, 64, /--keyring/],
      [["encrypt", ...of, "--in", "/no/such/file"], "", 1, /\/no\/such\/file: cannot be read/],
      [
        ["encrypt", "--keyring", "x", "--config", "/dev/null"],
        secret,
        78,
        /vault\.master_keys: is required; set/,
      ],
      [["serve", "--config", "/dev/null"], "", 78, /vault\.token: is required/],
    ];
    for (const [args, input, code, text] of cases) {
      const ran = await run(["vault", ...args], input);
      assert.equal(ran.code, code, `${args.join(" ")}: ${ran.stderr}`);
      assert.match(ran.stderr, text);
      assert.doesNotMatch(ran.stderr + ran.stdout, /CANARY/);
    }
  });

  test("refuses a master key that is none before anything starts, without quoting it", async (t) => {
    const { config, keysPath } = await makeVault(t);
    await writeFile(keysPath, `${Buffer.from("CANARY-not-a-key").toString("base64")}\n`);
    const ran = await run(["vault", "encrypt", "-c", config, "--keyring", "env_1"], "x");
    assert.equal(ran.code, 78);
    assert.match(ran.stderr, /vault\.master_keys: entry 1 is not a master key; make one with/);
    assert.doesNotMatch(ran.stderr, /CANARY|Q0FOQVJZ/);
  });

  test("does not serve plain HTTP beyond loopback unless that is allowed", async (t) => {
    const port = await freePort();
    const { config } = await makeVault(t, `rpc_port = ${port}`);
    const serve = ["vault", "serve", "--config", config];
    const refused = await run(serve);
    assert.equal(refused.code, 78, refused.stderr);
    assert.match(
      refused.stderr,
      /listen_host: .* plain HTTP from other machines; .*vault\.allow_insecure = true/,
    );
    assert.doesNotMatch(refused.stderr, /CANARY/);
    startKrane(t, krane.program, [...serve, "--vault-allow-insecure", "true"]);
    await eventually("the vault is ready", async () => {
      assert.equal((await fetch(`http://127.0.0.1:${port}/health/ready`)).status, 200);
    });
  });

  test("serves other processes until it is told to stop, without a control plane", async (t) => {
    const port = await freePort();
    const metricsPort = await freePort();
    const { config, folder } = await makeVault(
      t,
      `rpc_port = ${port}\nlisten_host = "127.0.0.1"\nobservability.metrics.prometheus_port = ${metricsPort}`,
    );
    const server = startKrane(t, krane.program, ["vault", "serve", "--config", config]);
    const url = `http://127.0.0.1:${port}`;
    await eventually("the vault is ready", async () => {
      const ready = await fetch(`${url}/health/ready`);
      assert.deepEqual(await ready.json(), { status: "ok", checks: { storage: "ok" } });
    });
    // On Linux the whole of 127/8 leads to this machine, so a port on all addresses would answer here too.
    if (process.platform === "linux")
      for (const open of [port, metricsPort])
        await assert.rejects(fetch(`http://127.0.0.2:${open}/`), "it listens beyond its address");
    const remote = join(folder, "remote.toml");
    await writeFile(remote, `[vault]\nurl = "${url}"\ntoken = "CANARY-token"\n`);
    const { stdout: encrypted } = await run(
      ["vault", "encrypt", "-c", remote, "--keyring", "env_1", "--exact"],
      secret,
    );
    // The same value through the vault, and from its storage.
    for (const path of [remote, config])
      assert.equal(
        (await run(["vault", "decrypt", "-c", path, "--keyring", "env_1"], encrypted)).stdout,
        secret,
      );
    server.child.kill("SIGTERM");
    const { code, stdout, stderr } = await server.exit;
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stdout + stderr, /CANARY/);
  });

  test("rotation that is killed repeatedly under load loses nothing, and the old key can be removed at the end", async (t) => {
    const { config, data, keysPath, keys } = await makeVault(t);
    const storage = createFileStorage(data, { clock: createSystemClock() });
    const [oldKey = ""] = await keys();
    const filler = createTestVault({ storage, keys: [oldKey] });
    const samples = new Map<string, string>();
    for (let index = 0; index < 150; index++) {
      const keyring = `env_${index}`;
      samples.set(keyring, (await filler.encrypt({ keyring, data: keyring }, signal)).encrypted);
    }
    await writeFile(keysPath, `${oldKey}\n${(await run(["vault", "keygen"])).stdout}`);
    const both = await keys();
    // Each look is a new process's: nothing is in memory.
    const readAll = async (masterKeys: readonly string[]) => {
      const vault = createTestVault({ storage, keys: masterKeys });
      for (const [keyring, encrypted] of samples)
        assert.equal(await vault.decrypt({ keyring, encrypted }, signal), keyring);
    };
    for (const target of [1, 40, 120, 200]) {
      const rotation = startKrane(t, krane.program, ["vault", "rotate", "--config", config]);
      const exited = once(rotation.child, "exit");
      const reading = (async () => {
        do await readAll(both);
        while (rotation.child.exitCode === null && rotation.child.signalCode === null);
      })();
      await eventually(`${target} objects are under the new key`, async () => {
        if (rotation.child.exitCode === null)
          assert.ok((await countUnder(data, both[0] ?? "")) <= 300 - target, "not yet");
      });
      rotation.child.kill("SIGKILL");
      await exited;
      await reading;
      await readAll(both);
    }
    const last = await run(["vault", "rotate", "--config", config]);
    assert.equal(last.code, 0, last.stderr);
    assert.match(
      last.stdout,
      /^300 stored data keys, \d+ of them re-encrypted with kek_\w+; older master keys can be removed/,
    );
    await readAll(both.slice(1));
  });
});

/** Objects that are still under this master key. */
async function countUnder(folder: string, masterKey: string): Promise<number> {
  const bytes = Buffer.from(masterKey, "base64");
  const id = bytes.subarray(2, 2 + bytes.readUInt8(1)).toString();
  let count = 0;
  for (const keyring of await readdir(join(folder, "keyring")))
    for (const name of await readdir(join(folder, "keyring", keyring))) {
      const stored = fromBinary(
        EncryptedDataEncryptionKeySchema,
        await readFile(join(folder, "keyring", keyring, name)),
      );
      if (stored.encrypted?.encryptionKeyId === id) count += 1;
    }
  return count;
}
