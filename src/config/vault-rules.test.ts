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
const local = 'listen_host = "127.0.0.1"\n';
const disk = '[vault.file]\npath = "/var/lib/vault"\n';

test("a vault runs without a region and a control plane", () => {
  const outcome = parse("serve", `rpc_port = 8060\n${local}[vault]\ntoken = "t"\n${keys}${disk}`);
  assert.ok(outcome.kind === "valid");
  assert.equal(outcome.config.rpcPort, 8060);
  assert.equal(outcome.config.listenHost, "127.0.0.1");
  assert.equal(outcome.config.region, "");
  assert.equal(outcome.config.vault.kind, "embedded");
  assert.ok(outcome.config.token);
  assert.ok(Object.isFrozen(outcome.config.vault));
});

test("an agent's file also works for a vault", () => {
  const agent = 'region = "a.b"\n[control]\nurl = "https://c.example.com"\ntoken = "t"\n';
  assert.deepEqual(refused("serve", `${local}${agent}[vault]\ntoken = "t"\n${keys}${disk}`), []);
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
    ["serve", `${local}[vault]\n${keys}${disk}`, ["vault.token"]],
    ["serve", `${local}${remote}`, ["vault.url"]],
    ["serve", local, ["vault.master_keys", "vault.token"]],
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

test("a vault does not accept its token in clear text from other machines", () => {
  const vault = (more = "") => `[vault]\ntoken = "t"\n${keys}${more}${disk}`;
  const tls = '[tls]\ncert_file = "c"\nkey_file = "k"\n';
  const host = (text: string) => `listen_host = "${text}"\n`;
  assert.deepEqual(refused("serve", vault()), ["listen_host"]);
  for (const open of ["0.0.0.0", "::", "10.1.2.3", "vault.example.com", "127.example.com", "fd00::1"]) {
    assert.deepEqual(refused("serve", host(open) + vault()), ["listen_host"], open);
    assert.deepEqual(refused("serve", host(open) + vault() + tls), [], open);
    assert.deepEqual(refused("serve", host(open) + vault("allow_insecure = true\n")), [], open);
  }
  for (const closed of ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
    assert.deepEqual(refused("serve", host(closed) + vault()), [], closed);
  for (const use of ["call", "keys"] as const) assert.deepEqual(refused(use, vault()), [], use);
});

test("a listen host is an address or a name, without a port", () => {
  const problems = (host: string) => refused("keys", `listen_host = "${host}"\n[vault]\n${keys}${disk}`);
  for (const host of ["", "[::1]", "127.0.0.1:8070", "10.0.0.256", "http://a", "a b", "a_b", "-a", "*"])
    assert.deepEqual(problems(host), ["listen_host"], host);
  for (const host of ["0.0.0.0", "::", "fe80::1%eth0", "krane", "vault.example.com"])
    assert.deepEqual(problems(host), [], host);
});

test("the rules for ports apply to a vault too", () => {
  const text = `rpc_port = 9090\n${local}[vault]\ntoken = "t"\n${keys}${disk}[observability.metrics]\nprometheus_port = 9090\n`;
  assert.deepEqual(refused("serve", text), ["observability.metrics.prometheus_port"]);
  assert.deepEqual(refused("serve", `[tls]\ncert_file = "c"\n[vault]\ntoken = "t"\n${keys}${disk}`), [
    "tls.key_file",
  ]);
});
