// Validates the names that become part of a storage path. They come from callers and from inside ciphertexts, so they are
// checked before the storage is accessed: a key id of "../other/LATEST" must never reach a file system or a bucket.

import { randomInt } from "node:crypto";
import { invalid } from "./vault-error.ts";

// No dots and no slashes, so that a name cannot be a path. Case matters.
const keyringPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;
const dataKeyPattern = /^dek_[A-Za-z0-9]{8,64}$/;
const masterKeyPattern = /^kek_[A-Za-z0-9]{8,64}$/;
const contextCharsMax = 1024;

/** The name of the object that holds the newest data key of a keyring; no data key can have this id. */
export const latest = "LATEST";

export const keyringsPrefix = "keyring/";

export function checkKeyring(keyring: string): void {
  if (keyringPattern.test(keyring)) return;
  throw invalid('keyring: must be 1 to 128 letters, digits, "-" or "_", and begin with a letter or digit');
}

/** An absent context means "not bound"; an empty one is a mistake of the caller. */
export function checkContext(context: string | undefined): void {
  if (context === undefined) return;
  if (context === "") throw invalid("context: must not be empty; leave it out to bind the value to no name");
  if (context.length > contextCharsMax)
    throw invalid(`context: is longer than ${contextCharsMax} characters`);
}

export function isDataKeyId(id: string): boolean {
  return dataKeyPattern.test(id);
}

export function isMasterKeyId(id: string): boolean {
  return masterKeyPattern.test(id);
}

/** The storage path of a data key. */
export function objectKeyOf(keyring: string, name: string): string {
  if (!keyringPattern.test(keyring) || !(name === latest || isDataKeyId(name)))
    throw new TypeError("invalid name in a storage path");
  return `${keyringsPrefix}${keyring}/${name}`;
}

/** The parts of a storage path; undefined for an object that krane did not name. */
export function parseObjectKey(
  objectKey: string,
): { readonly keyring: string; readonly name: string } | undefined {
  const [folder, keyring = "", name = "", ...rest] = objectKey.split("/");
  const isOurs =
    rest.length === 0 &&
    `${folder}/` === keyringsPrefix &&
    keyringPattern.test(keyring) &&
    (name === latest || isDataKeyId(name));
  return isOurs ? { keyring, name } : undefined;
}

const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 24;

/**
 * Ids are not secret, but no two keys may have the same one, even if different vaults create them: hence 24 letters and
 * digits from the system's generator, about 142 bits.
 */
export function randomKeyId(prefix: "dek" | "kek"): string {
  const rest = Array.from({ length }, () => characters.charAt(randomInt(characters.length))).join("");
  return `${prefix}_${rest}`;
}
