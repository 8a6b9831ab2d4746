// Parses and generates master keys. The setting has one per line, each the base64 of a `vault.v1.KeyEncryptionKey`. The
// last one encrypts, all of them decrypt: a new key is added at the end, and the old ones stay until no data key is wrapped
// by them.
import { createSecretKey, randomBytes } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ConfigError } from "../config/error.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { type KeyEncryptionKey, KeyEncryptionKeySchema } from "../gen/vault/v1/object_pb.ts";
import { keyBytes, type SealedBy } from "./envelope.ts";
import { isMasterKeyId, randomKeyId } from "./identifiers.ts";

export interface MasterKeys {
  readonly newest: SealedBy;
  byId(id: string): SealedBy | undefined;
}

export interface MasterKeySource {
  current(signal: AbortSignal): Promise<MasterKeys>;
  /** Makes the next current() read the file, for example after an object names an unknown key. */
  refresh(): void;
}

/**
 * Follows changes of the file with the keys; parses them only when they changed. If the new content is invalid, the current
 * keys stay in use.
 */
export function createMasterKeySource(
  source: SecretSource,
  onFailure: (error: ConfigError) => void = () => undefined,
): MasterKeySource {
  let read: { readonly text: string; readonly keys: MasterKeys } | undefined;
  return {
    async current(signal) {
      const text = (await source.current(signal)).reveal();
      if (read?.text === text) return read.keys;
      try {
        read = { text, keys: parseMasterKeys(text) };
      } catch (error) {
        if (read === undefined || !(error instanceof ConfigError)) throw error;
        read = { text, keys: read.keys };
        onFailure(error);
      }
      return read.keys;
    },
    refresh: () => source.refresh(),
  };
}

export function parseMasterKeys(text: string): MasterKeys {
  const keys = new Map<string, SealedBy>();
  let newest: SealedBy | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    const entry = `vault.master_keys: entry ${index + 1}`;
    const message = parseLine(line);
    if (message === undefined)
      throw unusable(`${entry} is not a master key; make one with \`krane vault keygen\``);
    const key = createSecretKey(message.key);
    message.key.fill(0);
    // With two keys of the same id, it would depend on their order which one opens an object.
    const other = keys.get(message.id);
    if (other !== undefined && !other.key.equals(key))
      throw unusable(`${entry} has the id of another entry, ${message.id}, and a different key; remove one`);
    newest = { id: message.id, key };
    keys.set(message.id, newest);
  }
  if (newest === undefined) throw unusable("vault.master_keys: has no key in it");
  return { newest, byId: (id) => keys.get(id) };
}

/** A new master key, in the form of the setting. */
export function generateMasterKey(wallMs: number): string {
  const message = create(KeyEncryptionKeySchema, {
    id: randomKeyId("kek"),
    createdAt: BigInt(wallMs),
    key: randomBytes(keyBytes),
  });
  return Buffer.from(toBinary(KeyEncryptionKeySchema, message)).toString("base64");
}

function parseLine(line: string): KeyEncryptionKey | undefined {
  try {
    const message = fromBinary(KeyEncryptionKeySchema, Buffer.from(line, "base64"));
    return isMasterKeyId(message.id) && message.key.length === keyBytes ? message : undefined;
  } catch {
    // The parser's message may quote bytes of the key.
    return undefined;
  }
}

function unusable(message: string): ConfigError {
  return new ConfigError("secret_invalid", "vault.master_keys", message);
}
