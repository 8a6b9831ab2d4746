// Measures how many values the embedded vault encrypts and decrypts per second of CPU, with
// its data key cached as usual, compared with node:crypto alone: the same cipher, nonce, tag
// and key.
import { createCipheriv, createDecipheriv, createSecretKey, randomBytes } from "node:crypto";
import { createSystemClock } from "../src/concurrency/clock.ts";
import { Secret } from "../src/config/secret.ts";
import { createEmbeddedVault } from "../src/vault/embedded-vault.ts";
import { createMasterKeySource, generateMasterKey } from "../src/vault/master-keys.ts";
import { createMemoryStorage } from "../src/vault/storage/memory-storage.ts";
import type { Benchmark } from "./benchmark.ts";
import { median } from "./statistics.ts";

const rounds = 5;
const operations = 20_000;
const keyring = "env_benchmark";
const context = "DATABASE_URL";
// About the length of a database URL with its password.
const value = "postgres://user:0123456789abcdef0123456789abcdef@db.internal:5432/production";

type Work = () => unknown;

/** Operations per second of CPU. */
async function measure(work: Work): Promise<number> {
  const before = process.cpuUsage();
  for (let done = 0; done < operations; done++) await work();
  const { user, system } = process.cpuUsage(before);
  return operations / ((user + system) / 1_000_000);
}

function createBareWorks(): { encrypt: Work; decrypt: Work } {
  const key = createSecretKey(randomBytes(32));
  const gcm = { authTagLength: 16 } as const;
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce, gcm);
  const sealed = Buffer.concat([cipher.update(value, "utf8"), cipher.final()]);
  const tag = cipher.getAuthTag();
  return {
    encrypt() {
      const sealing = createCipheriv("aes-256-gcm", key, randomBytes(12), gcm);
      Buffer.concat([sealing.update(value, "utf8"), sealing.final(), sealing.getAuthTag()]).toString(
        "base64",
      );
    },
    decrypt() {
      const opening = createDecipheriv("aes-256-gcm", key, nonce, gcm).setAuthTag(tag);
      `${opening.update(sealed, undefined, "utf8")}${opening.final("utf8")}`;
    },
  };
}

async function createVaultWorks(
  signal: AbortSignal,
): Promise<{ encrypt: Work; decrypt: Work; close(): Promise<void> }> {
  const secret = new Secret(generateMasterKey(0));
  const masterKeys = createMasterKeySource({ current: async () => secret, refresh: () => undefined });
  const deps = { storage: createMemoryStorage(), masterKeys, clock: createSystemClock() };
  const vault = createEmbeddedVault({ format: "krane" }, deps);
  const { encrypted } = await vault.encrypt({ keyring, data: value, context }, signal);
  return {
    encrypt: () => vault.encrypt({ keyring, data: value, context }, signal),
    decrypt: () => vault.decrypt({ keyring, encrypted, context }, signal),
    close: () => vault.close(),
  };
}

async function run(signal: AbortSignal): Promise<readonly string[]> {
  const bare = createBareWorks();
  const vault = await createVaultWorks(signal);
  const lines: string[] = [];
  for (const verb of ["encrypt", "decrypt"] as const) {
    const samples = { vault: [] as number[], bare: [] as number[] };
    for (let round = -1; round < rounds; round++) {
      signal.throwIfAborted();
      const pair = { bare: await measure(bare[verb]), vault: await measure(vault[verb]) };
      // The first round warms up the compiler.
      if (round < 0) continue;
      samples.bare.push(pair.bare);
      samples.vault.push(pair.vault);
    }
    const [ours, raw] = [median(samples.vault), median(samples.bare)];
    lines.push(
      `${verb}: vault ${ours.toFixed(0)}/s, node:crypto ${raw.toFixed(0)}/s, ratio ${(ours / raw).toFixed(2)}`,
    );
  }
  await vault.close();
  lines.push(
    `per second of CPU, a value of ${value.length} bytes bound to its name; median of ${rounds} rounds, taking turns`,
  );
  return lines;
}

export const vaultBenchmark: Benchmark = {
  name: "vault",
  measures: "the embedded vault, beside bare node:crypto",
  run,
};
