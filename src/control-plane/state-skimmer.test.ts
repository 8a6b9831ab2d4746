import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import fc from "fast-check";
import { ApplyDeploymentSchema, DeploymentStateSchema } from "../gen/ctrl/v1/deployment_pb.ts";
import { allKinds } from "../kinds/kinds.ts";
import { StateSkimmer } from "./state-skimmer.ts";

const bytesMax = 1_000;

function skimmed(bytes: Uint8Array, cuts: readonly number[] = [bytes.byteLength]) {
  const skimmer = new StateSkimmer();
  for (let offset = 0, index = 0; offset < bytes.byteLength; index++) {
    const end = offset + (cuts[index % cuts.length] ?? 1);
    skimmer.take(bytes.subarray(offset, end));
    offset = end;
  }
  return fromBinary(DeploymentStateSchema, skimmer.finish(bytesMax));
}

function encoded(spec: MessageInitShape<typeof ApplyDeploymentSchema>, version: bigint): Uint8Array {
  const value = create(ApplyDeploymentSchema, spec);
  return toBinary(
    DeploymentStateSchema,
    create(DeploymentStateSchema, { state: { case: "apply", value }, version }),
  );
}

describe("a state that is too large", () => {
  test("keeps its identity, version and size, however its bytes are cut", () => {
    const text = fc.string({ maxLength: 20 });
    fc.assert(
      fc.property(
        fc.record({
          k8sNamespace: text,
          k8sName: text,
          deploymentId: text,
          image: fc.string({ minLength: 301, maxLength: 400 }),
          replicas: fc.integer({ min: -5, max: 5 }),
          cpuMillicores: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
          command: fc.array(text),
          encryptedEnvironmentVariables: fc.uint8Array({ minLength: 1_000, maxLength: 2_000 }),
        }),
        fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1 }),
        (spec, version, cuts) => {
          const bytes = encoded(spec, version);
          const state = skimmed(bytes, cuts);
          assert.deepEqual([state.state.case, state.version], [undefined, version]);
          const { tooLarge } = state;
          const { k8sNamespace, k8sName, deploymentId } = spec;
          assert.deepEqual(
            [tooLarge?.spec?.k8sNamespace, tooLarge?.spec?.k8sName, tooLarge?.spec?.deploymentId],
            [k8sNamespace, k8sName, deploymentId],
          );
          assert.deepEqual([tooLarge?.bytes, tooLarge?.bytesMax], [BigInt(bytes.byteLength), 1_000n]);
          assert.equal(tooLarge?.spec?.image, "");
        },
      ),
    );
  });

  test("keeps little, however many short fields it has", () => {
    const command = Array.from({ length: 100_000 }, () => "x".repeat(50));
    const state = skimmed(encoded({ k8sName: "web", command }, 7n));
    assert.deepEqual([state.version, state.tooLarge?.spec?.k8sName], [7n, "web"]);
    assert.ok(toBinary(DeploymentStateSchema, state).byteLength < 20_000);
  });

  test("is damaged if it is cut off or is no such message, and is then never a guess", () => {
    const bytes = encoded({ k8sName: "web", encryptedEnvironmentVariables: new Uint8Array(2_000) }, 7n);
    // Behind the spec a message without a version is whole; whoever calls knows its length.
    const specEnd = bytes.byteLength - 2;
    for (let end = 1; end < specEnd; end++)
      assert.throws(() => skimmed(bytes.subarray(0, end)), ConnectError, `${end}`);
    assert.throws(() => skimmed(Buffer.concat([bytes, bytes])), ConnectError);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (garbage) => {
        try {
          skimmed(garbage);
        } catch (error) {
          assert.ok(error instanceof ConnectError);
        }
      }),
    );
  });

  test("has the same field numbers in every kind", () => {
    for (const { stateSchema } of allKinds) {
      const numbers = (fields: typeof stateSchema.fields) => fields.map(({ name, number }) => [name, number]);
      assert.deepEqual(numbers(stateSchema.fields), [
        ["apply", 1],
        ["delete", 2],
        ["version", 3],
        ["too_large", 10],
        ["content", 11],
      ]);
      const tooLarge = stateSchema.fields.find(({ name }) => name === "too_large")?.message;
      assert.deepEqual(numbers(tooLarge?.fields ?? []), [
        ["spec", 1],
        ["bytes", 2],
        ["bytes_max", 3],
      ]);
    }
  });
});
