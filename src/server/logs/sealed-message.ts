// Encrypts what one server sends to another through the database, which may log every statement. The key is agreed on from
// a key pair that each server makes when it starts and never stores, so that nothing else can read it.
import {
  createCipheriv,
  createDecipheriv,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from "node:crypto";

const algorithm = "aes-256-gcm";
const publicKeyBytes = 44;
const tagBytes = 16;
// Each message has a key of its own.
const nonce = Buffer.alloc(12);

export interface Mailbox {
  /** What others seal messages for this one with. */
  readonly publicKey: Buffer;
  /** Undefined for what was not sealed for this one. */
  open(sealed: Buffer): Buffer | undefined;
}

export function createMailbox(): Mailbox {
  const own = generateKeyPairSync("x25519");
  const publicKey = exported(own.publicKey);
  return {
    publicKey,
    open(sealed) {
      try {
        const sender = sealed.subarray(0, publicKeyBytes);
        const key = keyOf(own.privateKey, imported(sender), sender, publicKey);
        const decipher = createDecipheriv(algorithm, key, nonce);
        decipher.setAuthTag(sealed.subarray(publicKeyBytes, publicKeyBytes + tagBytes));
        return Buffer.concat([decipher.update(sealed.subarray(publicKeyBytes + tagBytes)), decipher.final()]);
      } catch {
        return undefined;
      }
    },
  };
}

export function sealFor(recipient: Buffer, message: Uint8Array): Buffer {
  const own = generateKeyPairSync("x25519");
  const sender = exported(own.publicKey);
  const cipher = createCipheriv(
    algorithm,
    keyOf(own.privateKey, imported(recipient), sender, recipient),
    nonce,
  );
  const text = Buffer.concat([cipher.update(message), cipher.final()]);
  return Buffer.concat([sender, cipher.getAuthTag(), text]);
}

function keyOf(own: KeyObject, other: KeyObject, sender: Buffer, recipient: Buffer): Buffer {
  const shared = diffieHellman({ privateKey: own, publicKey: other });
  return Buffer.from(hkdfSync("sha256", shared, Buffer.concat([sender, recipient]), "krane logs", 32));
}

function exported(key: KeyObject): Buffer {
  return key.export({ type: "spki", format: "der" });
}

function imported(key: Buffer): KeyObject {
  return createPublicKey({ key, type: "spki", format: "der" });
}
