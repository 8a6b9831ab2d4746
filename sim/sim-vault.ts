// The vault of a world. Its ciphertext is readable, so that a run can be repeated; it opens with its own keyring only.

import { onAbort } from "../src/concurrency/abort-listener.ts";
import type { Clock } from "../src/concurrency/clock.ts";
import type { OpenVault } from "../src/vault/vault.ts";
import { undecryptable, VaultError } from "../src/vault/vault-error.ts";
import type { SimProcess } from "./sim-process.ts";

/** Every plaintext begins with this, so that one that leaks is found. */
export const canary = "CANARY-";

export class SimVault {
  private readonly clock: Clock;
  isDown = false;
  latencyMs = 5;

  constructor(clock: Clock) {
    this.clock = clock;
  }

  /** The blob of a deployment with one variable. */
  blobOf(keyring: string, value: string): Uint8Array<ArrayBuffer> {
    const closed = Buffer.from(JSON.stringify({ keyring, value: mirrored(value) })).toString("base64");
    return new TextEncoder().encode(JSON.stringify({ secrets: { TOKEN: closed } }));
  }

  connect(process: SimProcess): OpenVault {
    const unsupported = () => Promise.reject(new VaultError("invalid", "this vault only decrypts"));
    return {
      encrypt: unsupported,
      decrypt: unsupported,
      encryptBulk: unsupported,
      reEncrypt: unsupported,
      decryptBulk: async ({ keyring, items }, signal) => {
        await this.wait(process, signal);
        if (this.isDown) throw new VaultError("unavailable", "the vault is down");
        return new Map([...items].map(([name, closed]) => [name, open(keyring, name, closed)] as const));
      },
      close: async () => undefined,
    };
  }

  private wait(process: SimProcess, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const stop = onAbort(signal, () => reject(signal.reason));
      this.clock.setTimer(this.latencyMs, () =>
        process.wake(() => {
          stop();
          resolve();
        }),
      );
    });
  }
}

function open(keyring: string, name: string, closed: string): string {
  const { keyring: own, value } = JSON.parse(Buffer.from(closed, "base64").toString()) as Record<
    string,
    string
  >;
  if (own !== keyring || value === undefined) throw undecryptable(name);
  return mirrored(value);
}

// So that ciphertext does not contain the canary.
function mirrored(value: string): string {
  return [...value].reverse().join("");
}
