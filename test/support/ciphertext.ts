// Text that has the shape of what a vault makes of a value, and opens with no key.
import { create, toBinary } from "@bufbuild/protobuf";
import { EncryptedSchema } from "../../src/gen/vault/v1/object_pb.ts";

export function ciphertextOf(value: string): string {
  const message = create(EncryptedSchema, {
    nonce: new Uint8Array(12),
    ciphertext: new TextEncoder().encode(value.padEnd(16, ".")),
    encryptionKeyId: "dek_1",
  });
  return Buffer.from(toBinary(EncryptedSchema, message)).toString("base64");
}
