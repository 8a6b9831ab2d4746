// Encrypts and decrypts a `vault.v1.Encrypted`: AES-256-GCM with a random 12-byte nonce and a 16-byte tag after the
// ciphertext.
//
// - The tag length is always given. Without it Node accepts tags of 4 bytes, which can be guessed.
// - Plaintext leaves this file only after final(), which verifies the tag.
// - What a ciphertext is bound to goes into the additional data, with a length before each part, so that no two sets of
//   parts give the same bytes.
// - An envelope has exactly one encoding. The tag does not cover the encoding itself, so any other form would be a second
//   ciphertext that opens too, with room for content that nobody authenticated.
import { createCipheriv, createDecipheriv, type KeyObject, randomBytes } from "node:crypto";
import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { Algorithm, Binding, type Encrypted, EncryptedSchema } from "../gen/vault/v1/object_pb.ts";
import { type Envelope, readEnvelope } from "./envelope-bytes.ts";

const cipher = "aes-256-gcm";
const nonceBytes = 12;
const tagBytes = 16;
const gcm = { authTagLength: tagBytes } as const;

// Must change when the parts of a binding do, so that no version opens what another one bound.
const bindingVersion = "krane.vault.v1";

export const keyBytes = 32;

export interface SealedBy {
  readonly id: string;
  readonly key: KeyObject;
}

/** What the tag authenticates besides the plaintext. */
export interface Bound {
  readonly binding: Binding;
  readonly parts: readonly string[];
}

export const unbound: Bound = { binding: Binding.NONE, parts: [] };

export function seal(plaintext: Uint8Array, by: SealedBy, bound: Bound, wallMs: number): Encrypted {
  const nonce = randomBytes(nonceBytes);
  const time = BigInt(wallMs);
  const sealing = createCipheriv(cipher, by.key, nonce, gcm);
  if (bound.binding !== Binding.NONE) sealing.setAAD(additionalData(bound, time));
  const ciphertext = Buffer.concat([sealing.update(plaintext), sealing.final(), sealing.getAuthTag()]);
  return create(EncryptedSchema, {
    algorithm: Algorithm.AES_256_GCM,
    nonce,
    ciphertext,
    encryptionKeyId: by.id,
    time,
    binding: bound.binding,
  });
}

/** The plaintext; undefined if anything about the ciphertext is wrong. */
export function open(encrypted: Envelope, key: KeyObject, bound: Bound): Buffer | undefined {
  const { algorithm, nonce, ciphertext, time } = encrypted;
  if (algorithm !== Algorithm.AES_256_GCM || encrypted.binding !== bound.binding) return undefined;
  if (nonce.length !== nonceBytes || ciphertext.length < tagBytes) return undefined;
  const opening = createDecipheriv(cipher, key, nonce, gcm);
  if (bound.binding !== Binding.NONE) opening.setAAD(additionalData(bound, time));
  opening.setAuthTag(ciphertext.subarray(-tagBytes));
  const unproven = opening.update(ciphertext.subarray(0, -tagBytes));
  try {
    // In this mode final() adds no bytes; it throws if the tag is wrong.
    opening.final();
  } catch {
    return undefined;
  }
  return unproven;
}

/** The envelope if these bytes are exactly its encoding. */
export function parseEnvelope(bytes: Buffer): Envelope | undefined {
  return readEnvelope(bytes) ?? parseExactly(EncryptedSchema, bytes);
}

/** The message if these bytes are exactly its encoding: no unknown field, no other order, nothing twice. */
export function parseExactly<S extends DescMessage>(
  schema: S,
  bytes: Uint8Array,
): MessageShape<S> | undefined {
  try {
    const message = fromBinary(schema, bytes, { readUnknownFields: false });
    return Buffer.compare(toBinary(schema, message), bytes) === 0 ? message : undefined;
  } catch {
    return undefined;
  }
}

function additionalData({ binding, parts }: Bound, time: bigint): Buffer {
  return joined([bindingVersion, String(binding), String(time), ...parts]);
}

/** A UTF-16 code unit takes at most this many bytes of UTF-8. */
const bytesPerUnitMax = 3;

function joined(parts: readonly string[]): Buffer {
  let bytesMax = 0;
  for (const part of parts) bytesMax += 4 + part.length * bytesPerUnitMax;
  const bytes = Buffer.allocUnsafe(bytesMax);
  let at = 0;
  for (const part of parts) {
    const length = bytes.write(part, at + 4, "utf8");
    bytes.writeUInt32BE(length, at);
    at += 4 + length;
  }
  return bytes.subarray(0, at);
}
