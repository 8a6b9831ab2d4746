// Checks whether a text is a ciphertext from the vault.
import { fromBinary } from "@bufbuild/protobuf";
import { EncryptedSchema } from "../gen/vault/v1/object_pb.ts";

const nonceBytes = 12;
const tagBytes = 16;

export function isCiphertext(value: unknown): value is string {
  if (typeof value !== "string" || !/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return false;
  try {
    const { nonce, ciphertext, encryptionKeyId } = fromBinary(EncryptedSchema, Buffer.from(value, "base64"));
    return nonce.length === nonceBytes && ciphertext.length >= tagBytes && encryptionKeyId !== "";
  } catch {
    return false;
  }
}
