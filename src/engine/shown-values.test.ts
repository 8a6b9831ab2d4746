import assert from "node:assert/strict";
import { test } from "node:test";
import { shownValue } from "./shown-values.ts";

const cases: readonly (readonly [path: string, value: unknown, shown: string])[] = [
  ["spec.replicas", 5, "5"],
  ["spec.template.spec.hostNetwork", true, "true"],
  ["spec.replicas", undefined, "absent"],
  ["spec.template.spec.runtimeClassName", "gvisor", '"gvisor"'],
  ["metadata.labels.team", "a", '"a"'],
  ["metadata.annotations.note", "canary", "[redacted]"],
  ["metadata.annotations.name", "canary", "[redacted]"],
  ["metadata.annotations", { name: "canary" }, "[redacted]"],
  ["data.image", "canary", "[redacted]"],
  ["spec.containers.env.value", "canary", "[redacted]"],
  ["spec.containers.args", ["--token", "canary"], "[[redacted],[redacted]]"],
  ["spec.someFieldOfANewerKubernetes", "canary", "[redacted]"],
  ["spec.containers.livenessProbe.httpGet.path", "/health?key=canary", '"/health?[redacted]"'],
  ["spec.containers.image", "a\u001b[2Jb\u2028c", '"a\\u001b[2Jb c"'],
  [
    "spec.containers",
    { name: "evil", env: [{ name: "A", value: "canary" }], securityContext: { privileged: true } },
    '{"name":"evil","env":[{"name":"A","value":[redacted]}],"securityContext":{"privileged":true}}',
  ],
  [
    "spec.volumes",
    { name: "host", hostPath: { path: "/" }, csi: { volumeAttributes: { name: "canary" } } },
    '{"name":"host","hostPath":{"path":"/"},"csi":{"volumeAttributes":[redacted]}}',
  ],
];

for (const [path, value, shown] of cases)
  test(`${path} of ${JSON.stringify(value)} is shown as ${shown}`, () => {
    assert.equal(shownValue(path.split("."), value), shown);
  });

test("a long value is cut", () => {
  const long = shownValue(["spec", "image"], "x".repeat(5_000));
  assert.ok(long.length < 200, `${long.length}`);
});
