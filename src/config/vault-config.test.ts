import assert from "node:assert/strict";
import { test } from "node:test";
import { parseVaultConfig } from "./parse.ts";
import type { VaultUse } from "./vault-rules.ts";

function parse(use: VaultUse, text: string) {
  return parseVaultConfig(
    { file: { path: "vault.toml", text }, env: {}, flags: {}, randomId: () => "aB3dE6gH" },
    use,
  );
}

/** The settings that something is wrong with. */
function refused(use: VaultUse, text: string): string[] {
  const outcome = parse(use, text);
  return outcome.kind === "invalid" ? outcome.problems.map(({ path }) => path) : [];
}

const keys = 'master_keys = ["AAAA"]\n';
const disk = '[vault.file]\npath = "/var/lib/vault"\n';

test("a vault runs without a region and a control plane", () => {
  const outcome = parse("serve", `rpc_port = 8060\n[vault]\ntoken = "t"\n${keys}${disk}`);
  assert.ok(outcome.kind === "valid");
  assert.equal(outcome.config.rpcPort, 8060);
  assert.equal(outcome.config.region, "");
  assert.equal(outcome.config.vault.kind, "embedded");
  assert.ok(outcome.config.token);
  assert.ok(Object.isFrozen(outcome.config.vault));
});

test("an agent's file also works for a vault", () => {
  const agent = 'region = "a.b"\n[control]\nurl = "https://c.example.com"\ntoken = "t"\n';
  assert.deepEqual(refused("serve", `${agent}[vault]\ntoken = "t"\n${keys}${disk}`), []);
});

test("each use requires only what it needs", () => {
  const remote = '[vault]\nurl = "https://vault.example.com"\ntoken = "t"\n';
  const cases: readonly (readonly [VaultUse, string, readonly string[]])[] = [
    ["call", remote, []],
    ["call", `[vault]\n${keys}${disk}`, []],
    ["call", "", ["vault.master_keys"]],
    ["keys", `[vault]\n${keys}${disk}`, []],
    ["keys", remote, ["vault.url"]],
    ["keys", "", ["vault.master_keys"]],
    ["keys", `[vault]\n${keys}`, ["vault.master_keys"]],
    ["keys", disk, ["vault.file.path"]],
    ["serve", `[vault]\n${keys}${disk}`, ["vault.token"]],
    ["serve", remote, ["vault.url"]],
    ["serve", "", ["vault.master_keys", "vault.token"]],
  ];
  for (const [use, text, problems] of cases)
    assert.deepEqual(refused(use, text), problems, `${use}: ${text}`);
});

test("a vault token is not sent in clear text to a public host", () => {
  const text = (more: string) => `[vault]\nurl = "http://vault.example.com"\ntoken = "t"\n${more}`;
  assert.deepEqual(refused("call", text("")), ["vault.url"]);
  assert.deepEqual(refused("call", text("allow_insecure = true\n")), []);
  for (const host of ["127.0.0.1:8060", "vault:8060", "vault.unkey.svc", "10.1.2.3"])
    assert.deepEqual(refused("call", `[vault]\nurl = "http://${host}"\ntoken = "t"\n`), [], host);
});

test("the rules for ports apply to a vault too", () => {
  const text = `rpc_port = 9090\n[vault]\ntoken = "t"\n${keys}${disk}[observability.metrics]\nprometheus_port = 9090\n`;
  assert.deepEqual(refused("serve", text), ["observability.metrics.prometheus_port"]);
  assert.deepEqual(refused("serve", `[tls]\ncert_file = "c"\n[vault]\ntoken = "t"\n${keys}${disk}`), [
    "tls.key_file",
  ]);
});
