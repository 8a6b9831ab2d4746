import assert from "node:assert/strict";
import { test } from "node:test";
import { configFlags } from "../cli/config-source.ts";
import { allSections, allSettings, settings } from "./settings.ts";

test("no two settings share a path, a variable or a flag", () => {
  for (const property of ["path", "env", "flag"] as const) {
    const names = allSettings.map((setting) => setting[property]);
    assert.equal(new Set(names).size, names.length, property);
  }
});

test("a section is never also a setting", () => {
  const paths = new Set(allSettings.map(({ path }) => path));
  for (const section of allSections) assert.ok(!paths.has(section), section);
});

test("a flag is its variable without the prefix, in lower case with dashes", () => {
  for (const { env, flag } of allSettings) {
    assert.match(flag, /^[a-z0-9-]+$/);
    assert.equal(`UNKEY_${flag.toUpperCase().replaceAll("-", "_")}`, env);
  }
});

test("the variables that deployments already set keep their names", () => {
  const names: [string, string][] = [
    ["control.url", "UNKEY_CONTROL_PLANE_URL"],
    ["control.token", "UNKEY_CONTROL_PLANE_BEARER"],
    ["instance_id", "UNKEY_INSTANCE_ID"],
    ["region", "UNKEY_REGION"],
    ["registry.url", "UNKEY_REGISTRY_URL"],
    ["registry.username", "UNKEY_REGISTRY_USERNAME"],
    ["registry.password", "UNKEY_REGISTRY_PASSWORD"],
    ["observability.metrics.prometheus_port", "UNKEY_PROMETHEUS_PORT"],
    ["rpc_port", "UNKEY_RPC_PORT"],
    ["vault.url", "UNKEY_VAULT_URL"],
    ["vault.token", "UNKEY_VAULT_TOKEN"],
    ["vault.master_keys", "UNKEY_VAULT_MASTER_KEYS"],
    ["vault.s3.url", "UNKEY_VAULT_S3_URL"],
    ["vault.s3.bucket", "UNKEY_VAULT_S3_BUCKET"],
    ["vault.s3.access_key_id", "UNKEY_VAULT_S3_ACCESS_KEY_ID"],
    ["vault.s3.access_key_secret", "UNKEY_VAULT_S3_ACCESS_KEY_SECRET"],
    ["observability.tracing.enabled", "UNKEY_OTEL_ENABLED"],
    ["observability.tracing.sample_rate", "UNKEY_OTEL_TRACE_SAMPLING_RATE"],
    ["observability.logging.sample_rate", "UNKEY_LOG_SAMPLE_RATE"],
    ["observability.logging.slow_threshold", "UNKEY_LOG_SLOW_THRESHOLD"],
  ];
  const envOf = new Map(allSettings.map(({ path, env }) => [path, env]));
  for (const [path, env] of names) assert.equal(envOf.get(path), env);
});

test("every secret has a file setting, with the variable's name and _FILE", () => {
  const { controlToken, vaultMasterKeys } = settings;
  assert.equal(controlToken.file.path, "control.token_file");
  assert.equal(controlToken.file.env, "UNKEY_CONTROL_PLANE_BEARER_FILE");
  assert.equal(vaultMasterKeys.file.path, "vault.master_keys_file");
  const secrets = Object.values(settings).filter((setting) => "file" in setting);
  assert.deepEqual(
    secrets.map(({ path }) => path),
    [
      "control.token",
      "registry.password",
      "vault.token",
      "vault.master_keys",
      "vault.s3.access_key_secret",
      "seal.keys",
      "scheduler.token",
      "agent.token",
    ],
  );
});

test("every default passes the checks of its own kind", () => {
  const facts = { hasSection: () => false, randomId: () => "aB3dE6gH" };
  for (const { path, kind, fallback } of allSettings) {
    if (fallback === undefined) continue;
    const value = fallback.value(facts);
    const text = Array.isArray(value) ? value.join() : kind.show(value).replaceAll('"', "");
    assert.deepEqual(kind.fromText(text), { kind: "ok", value }, path);
  }
});

test("every setting has a flag with a placeholder and a description in plain text", () => {
  assert.equal(configFlags.length, allSettings.length);
  for (const { name, placeholder, description } of configFlags) {
    assert.ok(placeholder.length > 0, name);
    assert.match(description, /^[A-Za-z][^`]+[.)]$/, name);
  }
  assert.equal(configFlags.find(({ name }) => name === "otel-enabled")?.isSwitch, true);
  assert.equal(configFlags.find(({ name }) => name === "rpc-port")?.isSwitch, false);
});
