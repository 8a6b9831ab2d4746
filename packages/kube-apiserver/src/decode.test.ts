import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { builtinSchema } from "./builtin-schemas.ts";
import { DecodeError, decodeTyped } from "./decode.ts";
import type { JsonObject } from "./json.ts";

const podSpec = builtinSchema("io.k8s.api.core.v1.PodSpec");
const lease = builtinSchema("io.k8s.api.coordination.v1.Lease");

test("empty values are omitted or kept, as their Go types define", () => {
  const { object } = decodeTyped(podSpec, {
    containers: [{ name: "c" }],
    hostNetwork: false,
    automountServiceAccountToken: false,
    nodeSelector: {},
    tolerations: [],
    terminationGracePeriodSeconds: 0,
    nodeName: "",
    volumes: [{ name: "v", emptyDir: {} }],
    securityContext: null,
  });
  assert.deepEqual(object, {
    automountServiceAccountToken: false,
    containers: [{ name: "c", resources: {} }],
    terminationGracePeriodSeconds: 0,
    volumes: [{ name: "v", emptyDir: {} }],
  });
  assert.deepEqual(decodeTyped(podSpec, {}).object, { containers: null });
});

test("quantities and times come out in canonical form", () => {
  const resources = { limits: { cpu: "1000m", memory: 1024 } };
  const { object } = decodeTyped(podSpec, { containers: [{ name: "c", resources }] });
  assert.deepEqual((object["containers"] as JsonObject[])[0]?.["resources"], {
    limits: { cpu: "1", memory: "1024" },
  });
  const spec = { renewTime: "2026-01-01T02:00:00.123456+01:00" };
  const decoded = decodeTyped(lease, {
    metadata: { creationTimestamp: "2026-01-01T02:00:00.9+01:00" },
    spec,
  });
  assert.deepEqual(decoded.object["spec"], { renewTime: "2026-01-01T01:00:00.123456Z" });
  assert.deepEqual(decoded.object["metadata"], { creationTimestamp: "2026-01-01T01:00:00Z" });
});

test("unknown fields are reported with their path", () => {
  const { unknownFields } = decodeTyped(podSpec, { containers: [{ name: "c", nope: 1 }], foo: {} });
  assert.deepEqual(unknownFields, ["containers[0].nope", "foo"]);
});

test("wrong types are rejected with Go's message", () => {
  const cases: readonly [JsonObject, RegExp][] = [
    [
      { nodeName: 1 },
      /^json: cannot unmarshal number into Go struct field PodSpec\.nodeName of type string$/,
    ],
    [{ hostNetwork: "x" }, /cannot unmarshal string into Go struct field PodSpec\.hostNetwork of type bool$/],
    [
      { containers: {} },
      /cannot unmarshal object into Go struct field PodSpec\.containers of type \[\]v1\.Container$/,
    ],
    [{ terminationGracePeriodSeconds: 1.5 }, /cannot unmarshal number 1\.5 into .* of type int64$/],
    [{ containers: [{ name: "c", resources: { limits: { cpu: "x" } } }] }, /^quantities must match/],
  ];
  for (const [body, message] of cases) {
    assert.throws(
      () => decodeTyped(podSpec, body),
      (error: unknown) => error instanceof DecodeError && message.test(error.message),
      JSON.stringify(body),
    );
  }
});

test("decoding is idempotent", () => {
  const container = fc.record({
    name: fc.constantFrom("a", "b"),
    image: fc.constantFrom("", "i"),
    stdin: fc.boolean(),
    args: fc.array(fc.constantFrom("", "x"), { maxLength: 2 }),
    resources: fc.constantFrom({}, { limits: { cpu: "0.5" } }, { requests: { memory: "1024Mi" } }),
  });
  const spec = fc.record({
    containers: fc.array(container, { maxLength: 2 }),
    hostPID: fc.boolean(),
    subdomain: fc.constantFrom("", "s"),
  });
  fc.assert(
    fc.property(spec, (value) => {
      const once = decodeTyped(podSpec, value as unknown as JsonObject).object;
      assert.deepEqual(decodeTyped(podSpec, once).object, once);
    }),
  );
});
