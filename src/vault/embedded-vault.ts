// The vault inside this process: encrypts values with the data keys of a keyring, which are wrapped by the master keys.
// Requests are fully validated before the storage is accessed.
import { toBinary } from "@bufbuild/protobuf";
import type { Clock } from "../concurrency/clock.ts";
import { Binding, EncryptedSchema } from "../gen/vault/v1/object_pb.ts";
import type { DataKey, WriteFormat } from "./data-key.ts";
import { type Bound, open, parseEnvelope, seal, unbound } from "./envelope.ts";
import type { Envelope } from "./envelope-bytes.ts";
import { checkContext, checkKeyring, isDataKeyId } from "./identifiers.ts";
import { Keyrings, type KeyringsDeps, type KeyringsOptions } from "./keyrings.ts";
import type { EncryptedValue, OpenVault } from "./vault.ts";
import { invalid, undecryptable } from "./vault-error.ts";

export type EmbeddedVaultOptions = KeyringsOptions;
export type EmbeddedVaultDeps = KeyringsDeps;

/** Larger than any environment variable of a process. */
export const valueBytesMax = 1024 * 1024;
/** Base64 of the largest value with its envelope. */
const encryptedCharsMax = Math.ceil((valueBytesMax + 1024) / 3) * 4;
export const bulkItemsMax = 1_000;

export function createEmbeddedVault(options: EmbeddedVaultOptions, deps: EmbeddedVaultDeps): OpenVault {
  const keyrings = new Keyrings(options, deps);
  const { clock } = deps;
  const { format } = options;

  async function encrypt(keyring: string, data: string, context: string | undefined, signal: AbortSignal) {
    const plaintext = plaintextOf(data);
    const dataKey = await keyrings.newest(keyring, signal);
    return sealValue(plaintext, dataKey, { keyring, context, format }, clock);
  }

  async function decrypt(
    keyring: string,
    encrypted: string,
    context: string | undefined,
    signal: AbortSignal,
  ) {
    const message = parseEncrypted(encrypted);
    const dataKey = message && (await keyrings.byId(keyring, message.encryptionKeyId, signal));
    return dataKey && openValue(message, dataKey, keyring, context);
  }

  return {
    async encrypt({ keyring, data, context }, signal) {
      checkKeyring(keyring);
      checkContext(context);
      return encrypt(keyring, data, context, signal);
    },
    async decrypt({ keyring, encrypted, context }, signal) {
      checkKeyring(keyring);
      checkContext(context);
      const plaintext = await decrypt(keyring, encrypted, context, signal);
      if (plaintext === undefined) throw undecryptable();
      return plaintext;
    },
    async encryptBulk({ keyring, items, bindItemNames = false }, signal) {
      checkKeyring(keyring);
      checkItems(items);
      if (bindItemNames) for (const name of items.keys()) checkContext(name);
      const closed = new Map<string, EncryptedValue>();
      for (const [name, data] of items)
        closed.set(name, await encrypt(keyring, data, bindItemNames ? name : undefined, signal));
      return closed;
    },
    async decryptBulk({ keyring, items }, signal) {
      checkKeyring(keyring);
      checkItems(items);
      const opened = new Map<string, string>();
      let dataKey: DataKey | undefined;
      for (const [name, encrypted] of items) {
        const message = parseEncrypted(encrypted);
        // Most values of a keyring have the same key.
        if (message !== undefined && dataKey?.id !== message.encryptionKeyId)
          dataKey = await keyrings.byId(keyring, message.encryptionKeyId, signal);
        const plaintext = message && dataKey && openValue(message, dataKey, keyring, name);
        if (plaintext === undefined) throw undecryptable(name);
        opened.set(name, plaintext);
      }
      return opened;
    },
    async reEncrypt({ keyring, encrypted, context }, signal) {
      checkKeyring(keyring);
      checkContext(context);
      const plaintext = await decrypt(keyring, encrypted, context, signal);
      if (plaintext === undefined) throw undecryptable();
      // Re-encrypting must use the newest key, not a cached one.
      keyrings.forgetNewest(keyring);
      return encrypt(keyring, plaintext, context, signal);
    },
    async close() {
      keyrings.close();
      await deps.storage.close();
    },
  };
}

interface ValueOptions {
  readonly keyring: string;
  readonly context: string | undefined;
  readonly format: WriteFormat;
}

function sealValue(
  plaintext: Buffer,
  dataKey: DataKey,
  { keyring, context, format }: ValueOptions,
  clock: Clock,
): EncryptedValue {
  const wanted = context === undefined ? Binding.KEYRING : Binding.NAME;
  const bound = boundOf(format === "original" ? Binding.NONE : wanted, keyring, dataKey.id, context);
  if (bound === undefined) throw new TypeError("unknown binding");
  const message = seal(plaintext, dataKey, bound, clock.wallMs());
  plaintext.fill(0);
  const encrypted = Buffer.from(toBinary(EncryptedSchema, message)).toString("base64");
  return { encrypted, keyId: dataKey.id };
}

function openValue(
  message: Envelope,
  dataKey: DataKey,
  keyring: string,
  context: string | undefined,
): string | undefined {
  const bound = boundOf(message.binding, keyring, dataKey.id, context);
  const plaintext = bound && open(message, dataKey.key, bound);
  if (plaintext === undefined) return undefined;
  const text = textOf(plaintext);
  plaintext.fill(0);
  return text;
}

/** Undefined for a binding of a newer vault, and for a value bound to a name if no name is given. */
function boundOf(
  binding: Binding,
  keyring: string,
  keyId: string,
  context: string | undefined,
): Bound | undefined {
  if (binding === Binding.NONE) return unbound;
  if (binding === Binding.KEYRING) return { binding, parts: ["value", keyring, keyId] };
  if (binding !== Binding.NAME || context === undefined) return undefined;
  return { binding, parts: ["value", keyring, keyId, context] };
}

function parseEncrypted(encrypted: string): Envelope | undefined {
  if (encrypted === "" || encrypted.length > encryptedCharsMax) return undefined;
  const bytes = Buffer.from(encrypted, "base64");
  // Node skips characters that are not base64, so altered texts would open too.
  if (bytes.toString("base64") !== encrypted) return undefined;
  const message = parseEnvelope(bytes);
  return message !== undefined && isDataKeyId(message.encryptionKeyId) ? message : undefined;
}

function plaintextOf(data: string): Buffer {
  const bytes = Buffer.from(data, "utf8");
  if (bytes.length > valueBytesMax) throw invalid(`data: is larger than ${valueBytesMax} bytes`);
  // A lone surrogate cannot be encoded in UTF-8 and would come back as another character.
  if (bytes.toString("utf8") !== data) throw invalid("data: is not valid Unicode text");
  return bytes;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(plaintext: Buffer): string | undefined {
  try {
    return utf8.decode(plaintext);
  } catch {
    return undefined;
  }
}

function checkItems(items: ReadonlyMap<string, string>): void {
  if (items.size > bulkItemsMax) throw invalid(`items: has more than ${bulkItemsMax} entries`);
}
