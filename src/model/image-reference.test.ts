import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalRegistry, parseImageReference } from "./image-reference.ts";

const sha256 = `sha256:${"0123456789abcdef".repeat(4)}`;

for (const [text, expected] of [
  ["nginx", { registry: "docker.io", path: "nginx" }],
  ["nginx:1.27", { registry: "docker.io", path: "nginx", tag: "1.27" }],
  ["acme/web", { registry: "docker.io", path: "acme/web" }],
  ["index.docker.io/acme/web", { registry: "docker.io", path: "acme/web" }],
  ["registry.example/web", { registry: "registry.example", path: "web" }],
  ["Registry.Example/web", { registry: "registry.example", path: "web" }],
  ["registry:5000/web", { registry: "registry:5000", path: "web" }],
  ["registry:5000/web:1", { registry: "registry:5000", path: "web", tag: "1" }],
  ["localhost/web", { registry: "localhost", path: "web" }],
  ["127.0.0.1:5000/web", { registry: "127.0.0.1:5000", path: "web" }],
  ["[fd00::1]:5000/web:1", { registry: "[fd00::1]:5000", path: "web", tag: "1" }],
  ["r.example/a/b__c/d--e.f:T_1.-x", { registry: "r.example", path: "a/b__c/d--e.f", tag: "T_1.-x" }],
  [`r.example/web@${sha256}`, { registry: "r.example", path: "web", digest: sha256 }],
  [`r.example/web:1@${sha256}`, { registry: "r.example", path: "web", tag: "1", digest: sha256 }],
  ["registry:5000", { registry: "docker.io", path: "registry", tag: "5000" }],
] as const) {
  test(`${text.slice(0, 40)} is parsed`, () => {
    assert.deepEqual(parseImageReference(text), { kind: "valid", reference: { text, ...expected } });
  });
}

for (const [what, text] of [
  ["nothing", ""],
  ["a space", "registry.example/web 1"],
  ["a leading dash", "-web"],
  ["a path part with a leading dash", "registry.example/-web"],
  ["a line break", "registry.example/web\n"],
  ["a control character", "registry.example/web\u0000"],
  ["a letter outside ASCII", "registry.example/wéb"],
  ["an escape sequence", "registry.example/\u001b[31mweb"],
  ["5 KiB", `registry.example/${"a".repeat(5 * 1024)}`],
  ["a name of 256 characters", `r.example/${"a".repeat(246)}`],
  ["a scheme", "https://registry.example/web"],
  ["upper case in its path", "registry.example/Web"],
  ["an empty path part", "registry.example//web"],
  ["a path that climbs", "registry.example/../web"],
  ["a trailing slash", "registry.example/"],
  ["an empty tag", "registry.example/web:"],
  ["a tag of 129 characters", `registry.example/web:${"a".repeat(129)}`],
  ["two tags", "registry.example/web:1:2"],
  ["an empty digest", "registry.example/web@"],
  ["a short digest", "registry.example/web@sha256:abc"],
  ["a digest in upper case", `registry.example/web@${sha256.toUpperCase()}`],
  ["a weak digest", `registry.example/web@md5:${"0".repeat(32)}`],
  ["two digests", `registry.example/web@${sha256}@${sha256}`],
  ["credentials", "user:secret@registry.example/web"],
  ["port 0", "registry:0/web"],
  ["a port above 65535", "registry:65536/web"],
  ["a broken host", "registry-.example/web"],
  ["a shell", "registry.example/web;sh"],
  ["a variable", "registry.example/$(web)"],
  ["the id of an image", sha256],
  ["the beginning of an id", "sha256:0123"],
  ["an id without its algorithm", "0123456789abcdef".repeat(4)],
] as const) {
  test(`a reference with ${what} is rejected`, () => {
    assert.equal(parseImageReference(text).kind, "invalid");
  });
}

test("the longest name is accepted", () => {
  assert.equal(parseImageReference(`r.example/${"a".repeat(245)}`).kind, "valid");
});

test("a registry has one canonical spelling", () => {
  const registryOf = (image: string) => {
    const outcome = parseImageReference(image);
    return outcome.kind === "valid" && outcome.reference.registry;
  };
  assert.equal(registryOf("REGISTRY.example:5000/web"), "registry.example:5000");
  assert.equal(canonicalRegistry("registry-1.docker.io"), "docker.io");
  assert.equal(registryOf("nginx"), canonicalRegistry("docker.io"));
});

test("any text is accepted or rejected without a throw, and only printable ASCII is accepted", () => {
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.constantFrom("a", "A", "/", ":", "@", ".", "-", "_", "1", " ", sha256))
      .map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(text, (image) => {
      const outcome = parseImageReference(image);
      if (outcome.kind === "valid") assert.match(image, /^[A-Za-z0-9[][A-Za-z0-9[\]:/@._-]*$/);
    }),
    { numRuns: 2_000 },
  );
});
