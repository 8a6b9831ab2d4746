// Wraps and unwraps data keys. A data key is stored wrapped by a master key, in an `EncryptedDataEncryptionKey`. In krane's
// own format the wrapping is bound to the keyring, so that an object copied into another keyring does not open there.
import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  Binding,
  type DataEncryptionKey,
  DataEncryptionKeySchema,
  type Encrypted,
  EncryptedDataEncryptionKeySchema,
} from "../gen/vault/v1/object_pb.ts";
import { type Bound, keyBytes, open, parseExactly, type SealedBy, seal, unbound } from "./envelope.ts";
import { isDataKeyId, randomKeyId } from "./identifiers.ts";
import type { MasterKeys } from "./master-keys.ts";
import { VaultError } from "./vault-error.ts";

export type WriteFormat = "krane" | "original";

export interface DataKey {
  readonly id: string;
  readonly createdAtMs: bigint;
  readonly key: KeyObject;
}

export function generateDataKey(wallMs: number): DataKey {
  const bytes = randomBytes(keyBytes);
  const key = createSecretKey(bytes);
  bytes.fill(0);
  return { id: randomKeyId("dek"), createdAtMs: BigInt(wallMs), key };
}

export interface WrapOptions {
  readonly keyring: string;
  readonly format: WriteFormat;
  readonly wallMs: number;
}

/** The bytes of the stored object. */
export function wrapDataKey(dataKey: DataKey, by: SealedBy, options: WrapOptions): Uint8Array {
  const { id, createdAtMs: createdAt } = dataKey;
  const key = dataKey.key.export();
  const plain = toBinary(DataEncryptionKeySchema, create(DataEncryptionKeySchema, { id, createdAt, key }));
  const bound = options.format === "krane" ? wrapBound(options.keyring, by.id, id) : unbound;
  const encrypted = seal(plain, by, bound, options.wallMs);
  key.fill(0);
  plain.fill(0);
  return toBinary(
    EncryptedDataEncryptionKeySchema,
    create(EncryptedDataEncryptionKeySchema, { id, createdAt, encrypted }),
  );
}

/** A stored object that was parsed but not decrypted. */
export interface WrappedDataKey {
  readonly id: string;
  readonly masterKeyId: string;
  /** Returns undefined if the master key is not among these. Throws if the object is damaged. */
  unwrap(keys: MasterKeys): DataKey | undefined;
}

/** `where` is the path of the object, for errors. */
export function parseWrappedDataKey(bytes: Uint8Array, keyring: string, where: string): WrappedDataKey {
  const stored = parseExactly(EncryptedDataEncryptionKeySchema, bytes);
  const encrypted = stored?.encrypted;
  if (stored === undefined || encrypted === undefined || !isDataKeyId(stored.id)) throw damaged(where);
  const masterKeyId = encrypted.encryptionKeyId;
  return {
    id: stored.id,
    masterKeyId,
    unwrap(keys) {
      const masterKey = keys.byId(masterKeyId);
      return masterKey && unwrap(stored.id, encrypted, masterKey, keyring, where);
    },
  };
}

function unwrap(
  id: string,
  encrypted: Encrypted,
  masterKey: SealedBy,
  keyring: string,
  where: string,
): DataKey {
  const bound = encrypted.binding === Binding.NONE ? unbound : wrapBound(keyring, masterKey.id, id);
  const plain = open(encrypted, masterKey.key, bound);
  if (plain === undefined) throw damaged(where);
  const message = parsePlain(plain);
  // In the original's format the outer id is not authenticated; the inner one is.
  if (message === undefined || message.id !== id || message.key.length !== keyBytes) throw damaged(where);
  const key = createSecretKey(message.key);
  // The message's bytes are a view of these.
  plain.fill(0);
  return { id, createdAtMs: message.createdAt, key };
}

function wrapBound(keyring: string, masterKeyId: string, id: string): Bound {
  return { binding: Binding.KEYRING, parts: ["data key", keyring, masterKeyId, id] };
}

/** The tag has proved these bytes, so their encoding is not compared; that would leave a copy of the key in memory. */
function parsePlain(plain: Buffer): DataEncryptionKey | undefined {
  try {
    return fromBinary(DataEncryptionKeySchema, plain);
  } catch {
    return undefined;
  }
}

function damaged(where: string): VaultError {
  return new VaultError(
    "unusable_key",
    `${where}: is damaged, or belongs to another keyring; restore the object from a backup`,
  );
}
