// Reads a `vault.v1.Encrypted` as vaults write it. The library's reader, with the check that the bytes are exactly the
// encoding of what it read, takes longer than decrypting the value. This one takes each field only at its place and in
// its only encoding, so nothing is left to check. Any other form is left to the library.
import { Algorithm, Binding, type Encrypted } from "../gen/vault/v1/object_pb.ts";

export type Envelope = Pick<
  Encrypted,
  "algorithm" | "nonce" | "ciphertext" | "encryptionKeyId" | "time" | "binding"
>;

// Number of the field and type of its value, in the order in which they are written.
const nonceTag = (2 << 3) | 2;
const ciphertextTag = (3 << 3) | 2;
const keyIdTag = (4 << 3) | 2;
const timeTag = 5 << 3;
const bindingTag = 10 << 3;

const more = 0x80;
const ascii = 0x7f;
// Seven bits each: a number of more bytes is not exact.
const numberBytesMax = 7;
// The largest number that an enum can have.
const bindingMax = 2 ** 31 - 1;

/** Undefined for any other form, valid or not. */
export function readEnvelope(bytes: Buffer): Envelope | undefined {
  const reader = new Reader(bytes);
  // AES_256_GCM is 0, and a 0 is left out.
  const nonce = reader.block(nonceTag);
  const ciphertext = reader.block(ciphertextTag);
  const id = reader.block(keyIdTag);
  const time = reader.number(timeTag);
  // A newer vault may write others.
  const binding = reader.isAtEnd ? Binding.NONE : (reader.number(bindingTag) as Binding | undefined);
  if (nonce === undefined || ciphertext === undefined || time === undefined) return undefined;
  if (id?.every((byte) => byte <= ascii) !== true || !reader.isAtEnd) return undefined;
  if (binding === undefined || binding > bindingMax) return undefined;
  return {
    algorithm: Algorithm.AES_256_GCM,
    nonce,
    ciphertext,
    encryptionKeyId: id.toString("latin1"),
    time: BigInt(time),
    binding,
  };
}

class Reader {
  private readonly bytes: Buffer;
  private at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.at === this.bytes.length;
  }

  /** A field that is not empty. */
  block(tag: number): Buffer | undefined {
    const length = this.number(tag);
    const end = this.at + (length ?? 0);
    if (length === undefined || end > this.bytes.length) return undefined;
    const block = this.bytes.subarray(this.at, end);
    this.at = end;
    return block;
  }

  /** A number that is not 0, in as few bytes as possible. */
  number(tag: number): number | undefined {
    if (this.bytes[this.at] !== tag) return undefined;
    this.at += 1;
    let value = 0;
    for (let place = 0; place < numberBytesMax; place++) {
      const byte = this.bytes[this.at++] ?? 0;
      value += (byte & ~more) * 2 ** (7 * place);
      // A last byte of 0 adds nothing, and means that the bytes have ended or could be fewer.
      if ((byte & more) === 0) return byte === 0 ? undefined : value;
    }
    return undefined;
  }
}
