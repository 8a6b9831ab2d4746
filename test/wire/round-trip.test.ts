// Bytes as peers really send them, encoded by hand, so that the encoder of this
// program does not vouch for itself.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, fromJsonString, toBinary } from "@bufbuild/protobuf";
import { DeploymentStateSchema, WatchDeploymentsRequestSchema } from "../../src/gen/ctrl/v1/deployment_pb.ts";
import { SecretsConfigSchema } from "../../src/gen/ctrl/v1/secrets_pb.ts";
import { Health, ReportSentinelStatusRequestSchema } from "../../src/gen/ctrl/v1/sentinel_pb.ts";
import {
  Algorithm,
  EncryptedDataEncryptionKeySchema,
  EncryptedSchema,
  KeyEncryptionKeySchema,
} from "../../src/gen/vault/v1/object_pb.ts";

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ""), "hex"));
const base64 = (text: string) => Uint8Array.from(Buffer.from(text, "base64"));
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

// Field 1, the string "local.dev"; field 2, the varint 2^63 + 1.
const watchOfOriginal = hex("0a 09 6c6f63616c2e646576  10 81808080808080808001");

test("a version above 2^53 of an original request is read exactly", () => {
  const request = fromBinary(WatchDeploymentsRequestSchema, watchOfOriginal);
  assert.equal(request.region, "local.dev");
  assert.equal(request.versionLastSeen, 2n ** 63n + 1n);
  assert.equal(request.regionKey, undefined);
});

test("a request with a region key begins with the bytes of the original request", () => {
  const bytes = toBinary(
    WatchDeploymentsRequestSchema,
    create(WatchDeploymentsRequestSchema, {
      region: "local.dev",
      versionLastSeen: 2n ** 63n + 1n,
      regionKey: { platform: "dev", name: "local" },
    }),
  );
  // Field 10 as a message: platform "dev", name "local".
  assert.equal(text(bytes), text(watchOfOriginal) + text(hex("52 0c 0a 03 646576 12 05 6c6f63616c")));
});

test("an original deployment state is read with its oneof and its presence", () => {
  // apply { k8s_name "a", replicas 0 left out, build_id "" present }, version 7.
  const state = fromBinary(DeploymentStateSchema, hex("0a 05 12 01 61 5a 00  18 07"));
  assert.equal(state.version, 7n);
  assert.ok(state.state.case === "apply");
  assert.equal(state.state.value.k8sName, "a");
  assert.equal(state.state.value.replicas, 0);
  assert.equal(state.state.value.buildId, "");
  assert.equal(state.state.value.healthcheck, undefined);
});

test("a state with only a version has neither apply nor delete", () => {
  const state = fromBinary(DeploymentStateSchema, hex("18 07"));
  assert.equal(state.state.case, undefined);
  assert.equal(state.version, 7n);
});

test("fields and enum values of later versions survive a round trip", () => {
  // apply { 18 "x", 27 { 1: 2 } }, version 7: an app id and an autoscaling policy.
  const state = hex("0a 09 92 01 01 78 da 01 02 08 02  18 07");
  assert.equal(text(toBinary(DeploymentStateSchema, fromBinary(DeploymentStateSchema, state))), text(state));
  // k8s_name "s", health 9.
  const report = hex("0a 01 73 18 09");
  const parsed = fromBinary(ReportSentinelStatusRequestSchema, report);
  assert.ok(!Object.values<number>(Health).includes(parsed.health));
  assert.equal(text(toBinary(ReportSentinelStatusRequestSchema, parsed)), text(report));
});

test("secrets are read from their JSON form, and unknown JSON fields are refused", () => {
  const config = fromJsonString(SecretsConfigSchema, '{"secrets":{"KEY":"dmFsdWU="}}');
  assert.deepEqual(config.secrets, { KEY: "dmFsdWU=" });
  assert.deepEqual(fromJsonString(SecretsConfigSchema, "{}").secrets, {});
  assert.throws(() => fromJsonString(SecretsConfigSchema, '{"secrets":{},"more":1}'));
});

const masterKeyId = "kek_2gj0PIuXZsSRkFa4Nf9iKJpGzqO";

test("a configured master key is read", () => {
  const key = fromBinary(
    KeyEncryptionKeySchema,
    base64(
      "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=",
    ),
  );
  assert.equal(key.id, masterKeyId);
  assert.equal(key.createdAt, 1716195653332n);
  assert.equal(key.key.length, 32);
});

test("a stored data key is read, down to the ciphertext within", () => {
  const stored = fromBinary(
    EncryptedDataEncryptionKeySchema,
    base64(
      "CgxkZWtfVGVzdFZlYzEQgNCV/7wxGn8SDAABAgMEBQYHCAkKCxpHw+39hiJOERqZJt/Q1MJkHogAOwAibaZHRWM6nmlaWKInwFogs0tX" +
        "l/xSR6tXAdoKZmfuYHbuKhplmIGQGhGlwm9VQDmhACMiH2tla18yZ2owUEl1WFpzU1JrRmE0TmY5aUtKcEd6cU8ogNCV/7wx",
    ),
  );
  assert.equal(stored.id, "dek_TestVec1");
  assert.equal(stored.createdAt, 1700000000000n);
  assert.equal(stored.encrypted?.encryptionKeyId, masterKeyId);
  assert.equal(stored.encrypted?.algorithm, Algorithm.AES_256_GCM);
  assert.equal(text(stored.encrypted?.nonce ?? hex("")), "000102030405060708090a0b");
  assert.equal(stored.encrypted?.time, 1700000000000n);
  // A serialized DataEncryptionKey of 55 bytes and the tag.
  assert.equal(stored.encrypted?.ciphertext.length, 55 + 16);
});

test("an encrypted value is read, and written back byte for byte", () => {
  const bytes = base64(
    "EgxkZWZnaGlqa2xtbm8aGyB+sgoWyT3sXww6fp53TWnhY7edCgtd2sQFrCIMZGVrX1Rlc3RWZWMxKIDQlf+8MQ==",
  );
  const value = fromBinary(EncryptedSchema, bytes);
  assert.equal(value.encryptionKeyId, "dek_TestVec1");
  assert.equal(text(value.nonce), "6465666768696a6b6c6d6e6f");
  assert.equal(value.ciphertext.length, "hello krane".length + 16);
  assert.equal(value.time, 1700000000000n);
  assert.equal(text(toBinary(EncryptedSchema, value)), text(bytes));
});
