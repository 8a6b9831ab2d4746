import assert from "node:assert/strict";
import { test } from "node:test";
import { parseImageReference } from "./image-reference.ts";
import { desiredPullSecret, isPullSecretCurrent, pullSecretOf } from "./pull-secret.ts";

const password = { reveal: () => "p\u00e4ss:word" };
const registry = { host: "registry.example:5000", username: "robot", password };

function dockerConfig(secret: ReturnType<typeof desiredPullSecret>): unknown {
  return JSON.parse(Buffer.from(secret.data?.[".dockerconfigjson"] ?? "", "base64").toString("utf8"));
}

test("the secret has the credentials in the form that the kubelet reads", () => {
  const secret = desiredPullSecret("acme", registry);
  assert.equal(secret.type, "kubernetes.io/dockerconfigjson");
  assert.deepEqual(dockerConfig(secret), {
    auths: {
      "registry.example:5000": {
        username: "robot",
        password: "p\u00e4ss:word",
        auth: Buffer.from("robot:p\u00e4ss:word").toString("base64"),
      },
    },
  });
});

test("Docker Hub is identified by its URL, however it is spelled", () => {
  for (const host of ["docker.io", "index.docker.io"]) {
    const config = dockerConfig(desiredPullSecret("acme", { ...registry, host }));
    assert.deepEqual(Object.keys((config as { auths: object }).auths), ["https://index.docker.io/v1/"]);
  }
});

test("only the data depends on the password", () => {
  const one = desiredPullSecret("acme", registry);
  const other = desiredPullSecret("acme", { ...registry, password: { reveal: () => "other" } });
  assert.notDeepEqual(one.data, other.data);
  assert.deepEqual({ ...one, data: {} }, { ...other, data: {} });
});

test("a live secret is current until type, data or a label differs", () => {
  const desired = desiredPullSecret("acme", registry);
  const metadata = { ...desired.metadata, labels: { ...desired.metadata?.labels, more: "1" }, uid: "1" };
  assert.ok(isPullSecretCurrent({ ...desired, metadata }, desired));
  assert.ok(!isPullSecretCurrent({ ...desired, type: "Opaque" }, desired));
  assert.ok(!isPullSecretCurrent({ ...desired, data: {} }, desired));
  assert.ok(!isPullSecretCurrent({ ...desired, metadata: { labels: {} } }, desired));
  assert.ok(!isPullSecretCurrent(desiredPullSecret("acme", { ...registry, username: "x" }), desired));
});

function imageOf(text: string) {
  const outcome = parseImageReference(text);
  return outcome.kind === "valid" ? outcome.reference : assert.fail(outcome.reason);
}

test("an image is pulled with the agent's login if host and port are equal", () => {
  const isOf = (text: string, host: string) => {
    const name = pullSecretOf({ image: imageOf(text) }, host);
    assert.ok(name === undefined || name === "krane-registry", name);
    return name !== undefined;
  };
  assert.ok(isOf("registry.example/web", "registry.example"));
  assert.ok(isOf("Registry.example/web", "REGISTRY.EXAMPLE"));
  assert.ok(isOf("nginx", "index.docker.io"));
  assert.ok(!isOf("registry.example:5000/web", "registry.example"));
  assert.ok(!isOf("registry.example.evil/web", "registry.example"));
  assert.ok(!isOf("evil/registry.example/web", "registry.example"));
  assert.equal(pullSecretOf({ image: imageOf("nginx") }, undefined), undefined);
});

test("a Secret that a deployment names itself comes before the agent's login", () => {
  const named = { image: imageOf("registry.example/web"), pullSecret: "krane-registry-acme" };
  for (const host of ["registry.example", "other.example", undefined])
    assert.equal(pullSecretOf(named, host), "krane-registry-acme");
  assert.equal(pullSecretOf({ ...named, pullSecret: "" }, "registry.example"), "krane-registry");
});
