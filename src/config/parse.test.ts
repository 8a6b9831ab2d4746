import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Config } from "./config.ts";
import { type ConfigInput, type ConfigOutcome, parseConfig } from "./parse.ts";
import type { ConfigProblem } from "./problem.ts";
import { renderConfig, renderProblems } from "./render.ts";
import type { SecretRef } from "./secret.ts";
import { allSections, allSettings } from "./settings.ts";

const basis = 'region = "us-east-1.aws"\ncontrol.url = "https://c.example.com"\ncontrol.token = "t"\n';

function parse(text: string, rest: Partial<ConfigInput> = {}): ConfigOutcome {
  return parseConfig({
    file: { path: "f.toml", text },
    env: {},
    flags: {},
    randomId: () => "aB3dE6gH",
    ...rest,
  });
}

function config(text: string, rest: Partial<ConfigInput> = {}): Config {
  const outcome = parse(text, rest);
  assert.equal(outcome.kind, "valid", outcome.kind === "invalid" ? renderProblems(outcome.problems) : "");
  return outcome.config;
}

function problems(text: string, rest: Partial<ConfigInput> = {}): readonly ConfigProblem[] {
  const outcome = parse(text, rest);
  assert.equal(outcome.kind, "invalid");
  return outcome.problems;
}

function revealed(ref: SecretRef | undefined): string | undefined {
  return ref?.kind === "inline" ? ref.secret.reveal() : ref?.path;
}

test("a minimal file gives every default", () => {
  const { control, ...rest } = config(basis);
  assert.equal(control.url, "https://c.example.com");
  assert.equal(control.allowInsecure, false);
  assert.equal(revealed(control.token), "t");
  assert.deepEqual(rest, {
    instanceId: "ins_aB3dE6gH",
    region: { name: "us-east-1", platform: "aws", label: "us-east-1.aws" },
    rpcPort: 8070,
    kubernetes: {},
    lease: "auto",
    secrets: { audience: "krane", acceptDefaultAudience: false },
    logs: { enabled: false },
    reconcile: { workers: 64 },
    deletion: {
      mode: "confirmed",
      confirmations: 3,
      minimumAgeMs: 300_000,
      budgetObjects: 3,
      budgetFraction: 0.2,
      budgetWindowMs: 600_000,
    },
    drift: { managers: [], fields: [] },
    isolation: { networkPolicy: "required", runtimeClass: "gvisor", registries: [] },
    observability: {
      logging: { level: "info", sampleRate: 1, slowThresholdMs: 1_000 },
      metrics: { prometheusPort: 0 },
    },
  });
});

test("every section reaches the configuration", () => {
  const full = config(
    `${basis}platform = "gcp"
    [tls]
    cert_file = "c"
    key_file = "k"
    [kubernetes]
    kubeconfig = "kc"
    namespace = "krane-system"
    [registry]
    url = "https://registry.example.com/v2/"
    username = "u"
    password_file = "/p"
    [vault]
    master_keys = ["QQ==", "Qg=="]
    write_format = "original"
    [vault.s3]
    url = "http://s3:3902"
    bucket = "b"
    access_key_id = "i"
    access_key_secret = "s"
    [scheduler]
    token = "st"
    [agent]
    token = "at"
    [observability.tracing]
    `,
  );
  assert.deepEqual(full.region, { name: "us-east-1.aws", platform: "gcp", label: "us-east-1.aws" });
  assert.deepEqual(full.tls, { certFile: "c", keyFile: "k" });
  assert.deepEqual(full.kubernetes, { kubeconfig: "kc", namespace: "krane-system" });
  assert.deepEqual(full.registry, {
    url: "registry.example.com",
    username: "u",
    password: { kind: "file", path: "/p", setting: "registry.password" },
  });
  assert.ok(full.vault?.kind === "embedded" && full.vault.storage.kind === "s3");
  assert.equal(revealed(full.vault.masterKeys), "QQ==\nQg==");
  assert.equal(full.vault.writeFormat, "original");
  assert.equal(full.vault.storage.bucket, "b");
  assert.equal(revealed(full.vault.storage.accessKeySecret), "s");
  assert.equal(revealed(full.scheduler?.token), "st");
  assert.equal(full.scheduler?.scrape, false);
  assert.equal(revealed(full.agent?.token), "at");
  assert.deepEqual(full.observability.tracing, { sampleRate: 0.25 });
});

test("region and platform are split at the last dot, unless the platform is set", () => {
  const region = (text: string) => config(basis.replace('"us-east-1.aws"', text)).region;
  assert.deepEqual(region('"local"'), { name: "local", platform: "", label: "local" });
  assert.deepEqual(region('"a.b.c"'), { name: "a.b", platform: "c", label: "a.b.c" });
  assert.deepEqual(region('"a.b.c"\nplatform = "c"'), { name: "a.b", platform: "c", label: "a.b.c" });
  assert.deepEqual(region('"eu"\nplatform = "aws"'), { name: "eu", platform: "aws", label: "eu" });
});

test("tracing is on by its section or its variable, with different default rates, and off by the variable", () => {
  const tracing = (text: string, env = {}) => config(basis + text, { env }).observability.tracing;
  assert.equal(tracing(""), undefined);
  assert.deepEqual(tracing("[observability.tracing]"), { sampleRate: 0.25 });
  assert.deepEqual(tracing("", { UNKEY_OTEL_ENABLED: "true" }), { sampleRate: 0.01 });
  assert.deepEqual(tracing("[observability.tracing]", { UNKEY_OTEL_ENABLED: "1" }), { sampleRate: 0.25 });
  assert.equal(tracing("[observability.tracing]", { UNKEY_OTEL_ENABLED: "false" }), undefined);
  assert.equal(tracing("[observability.tracing]\nenabled = false"), undefined);
  assert.deepEqual(tracing("[observability.tracing]\nsample_rate = 0"), { sampleRate: 0 });
});

test("a flag overrides a variable, a variable overrides the file, and only the effective value is checked", () => {
  const text = `${basis}rpc_port = "bad"\n`;
  assert.equal(config(text, { env: { UNKEY_RPC_PORT: "2" } }).rpcPort, 2);
  assert.equal(config(text, { env: { UNKEY_RPC_PORT: "bad" }, flags: { "rpc-port": "3" } }).rpcPort, 3);
  assert.equal(problems(text)[0]?.line, 4);
});

test("an empty variable does not override the file", () => {
  assert.equal(config(`${basis}rpc_port = 5`, { env: { UNKEY_RPC_PORT: "" } }).rpcPort, 5);
});

test("variables and flags are not expanded", () => {
  const env = { UNKEY_CONTROL_PLANE_BEARER: "a$$b", NAME: "x" };
  assert.equal(revealed(config(basis, { env }).control.token), "a$$b");
});

test("a secret and its file are one choice across file, variables and flags", () => {
  const token = (env: Record<string, string>, flags = {}) =>
    revealed(config(basis, { env, flags }).control.token);
  assert.equal(token({ UNKEY_CONTROL_PLANE_BEARER_FILE: "/env" }), "/env");
  assert.equal(token({ UNKEY_CONTROL_PLANE_BEARER: "env" }), "env");
  assert.equal(
    token({ UNKEY_CONTROL_PLANE_BEARER: "env" }, { "control-plane-bearer-file": "/flag" }),
    "/flag",
  );
  const both = { UNKEY_CONTROL_PLANE_BEARER: "env", UNKEY_CONTROL_PLANE_BEARER_FILE: "/env" };
  assert.deepEqual(
    problems(basis, { env: both }).map(({ path, where }) => [path, where]),
    [["control.token", "UNKEY_CONTROL_PLANE_BEARER"]],
  );
  assert.equal(token(both, { "control-plane-bearer": "flag" }), "flag");
});

test("an empty string means unset for the settings that allow it", () => {
  const empty = config(`${basis}instance_id = ""\n[vault]\nurl = ""\ntoken = ""\n`);
  assert.equal(empty.instanceId, "ins_aB3dE6gH");
  assert.equal(empty.vault, undefined);
  const off = config(`${basis}[vault]\nurl = "https://v"\n`, { flags: { "vault-url": "" } });
  assert.equal(off.vault, undefined);
});

test("an embedded vault may also have the token that its clients must send", () => {
  const vault = config(`${basis}[vault]\ntoken = "t"\nmaster_keys = ["QQ=="]\nfile.path = "/v"\n`).vault;
  assert.ok(vault?.kind === "embedded");
  assert.deepEqual(vault.storage, { kind: "file", path: "/v" });
});

test("the control plane's plain HTTP needs permission outside private networks", () => {
  const url = (address: string) => basis.replace("https://c.example.com", address);
  assert.equal(problems(url("http://c.example.com"))[0]?.path, "control.url");
  assert.equal(config(url("http://10.0.0.1:7091")).control.url, "http://10.0.0.1:7091");
  assert.equal(
    config(`${url("http://c.example.com/")}control.allow_insecure = true`).control.allowInsecure,
    true,
  );
});

test("names of inherited properties are unknown keys and do not pollute prototypes", () => {
  const found = problems(`${basis}__proto__.polluted = 1\nconstructor.prototype.polluted = 1\n`);
  assert.deepEqual(
    found.map(({ path }) => path),
    ["__proto__", "constructor"],
  );
  assert.equal(Object.hasOwn(Object.prototype, "polluted"), false);
});

test("a file that is too large is rejected", () => {
  assert.match(problems(`# ${"x".repeat(300_000)}`)[0]?.message ?? "", /larger than 256 KiB/);
});

test("deep nesting and endless keys give problems instead of a crash", () => {
  for (const text of [
    `a = ${"[".repeat(5000)}${"]".repeat(5000)}`,
    `a = ${"{a=".repeat(5000)}1${"}".repeat(5000)}`,
    `${"a.".repeat(50_000)}a = 1`,
    `[${"a.".repeat(50_000)}a]`,
    `region = """${'\\"'.repeat(100_000)}"""`,
    `region = '''${"''\n".repeat(60_000)}'''`,
    `${"a".repeat(200_000)} = 1`,
    Array.from({ length: 20_000 }, (_, index) => `key_${index} = 1`).join("\n"),
  ]) {
    assert.ok(problems(text).length > 0);
  }
});

test("a text with control characters is shown on one line", () => {
  const text = renderProblems(
    problems(`${basis}"a\\nb\\u001b[31m" = 1\n`, { file: { path: "x\ny", text: "a = " } }),
  );
  assert.equal(text.split("\n").length, 2);
  const shown = renderProblems(problems(`${basis}"a\\nb\\u001b[31m\\u009b" = 1\n`));
  assert.match(shown, /^f\.toml:4: "a\\nb\\u001b\[31m\\u009b": is not a known setting/);
  assert.equal(shown.split("\n").length, 2);
});

test("a printed configuration is TOML that parses to the same values", () => {
  const first = parse(`${basis}[isolation]\nregistries = ["ghcr.io"]\n[observability.tracing]\n`);
  assert.equal(first.kind, "valid");
  const second = parse(renderConfig(first));
  assert.equal(second.kind, "valid");
  assert.deepEqual(
    second.origins.map(({ path, shown }) => [path, shown]),
    first.origins.map(({ path, shown }) => [path, shown]),
  );
});

// Text that is likely to touch every part: real keys and sections with good and bad values.
const name = fc.constantFrom(
  ...allSettings.map(({ path }) => path),
  ...allSections,
  "x",
  '"q r"',
  "__proto__",
);
const content = fc.oneof(
  fc.constantFrom(
    "0",
    "1",
    "-1",
    "0.5",
    "nan",
    "true",
    "[]",
    "{}",
    '["a", 1]',
    "1979-05-27",
    '"5m"',
    "'''\n'''",
  ),
  fc.constantFrom(
    '"https://h"',
    '"http://h.example.com"',
    '"krane"',
    '"QQ=="',
    '["QQ=="]',
    '"$',
    `"\${A}"`,
    '"${"',
  ),
  fc.string().map((text) => JSON.stringify(text)),
);
const line = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(name, content).map((pair) => pair.join(" = ")) },
  { weight: 2, arbitrary: name.map((section) => `[${section}]`) },
  { weight: 1, arbitrary: fc.string() },
);
const independentLines = [
  'instance_id = "krane-1"',
  "rpc_port = 1",
  'tls = { cert_file = "c", key_file = "k" }',
  'control.ca_file = "/ca"',
  'vault = { url = "https://v", master_keys = ["QQ=="], file.path = "/v" }',
  'scheduler.token = "s"',
  'agent.token_file = "/a"',
  'deletion.minimum_age = "1h"',
  'isolation.registries = ["ghcr.io"]',
  "observability.tracing = {}",
  "observability.metrics.prometheus_port = 2",
];
const text = fc.oneof(
  fc.subarray(independentLines).map((lines) => basis + lines.join("\n")),
  fc.array(line, { maxLength: 12 }).map((lines) => lines.join("\n")),
  fc
    .uniqueArray(fc.tuple(name, content), { maxLength: 12, selector: ([key]) => key })
    .map((pairs) => basis + pairs.map((pair) => pair.join(" = ")).join("\n")),
  fc.string({ maxLength: 200, unit: "binary" }),
);
const words = fc.oneof(fc.string(), fc.constantFrom("1", "true", "https://h", "5m", "krane", "QQ==", "/p"));
const variableName = fc.oneof(fc.constantFrom(...allSettings.map((setting) => setting.env)), fc.string());
const flagName = fc.oneof(fc.constantFrom(...allSettings.map(({ flag }) => flag)), fc.string());
const env = fc.oneof(fc.constant({}), fc.dictionary(variableName, words));
const flags = fc.oneof(fc.constant({}), fc.dictionary(flagName, words));

test("for any input, parsing returns a frozen outcome with problems sorted by line", () => {
  let validCount = 0;
  fc.assert(
    fc.property(fc.option(text), env, flags, (fileText, variables, given) => {
      const outcome = parseConfig({
        ...(fileText === null ? {} : { file: { path: "f.toml", text: fileText } }),
        env: variables,
        flags: given,
        randomId: () => "aB3dE6gH",
      });
      assertFrozen(outcome);
      const found = outcome.kind === "valid" ? outcome.warnings : outcome.problems;
      const lines = found.map((problem) => problem.line ?? Number.MAX_SAFE_INTEGER);
      assert.deepEqual(
        lines,
        lines.toSorted((a, b) => a - b),
      );
      assert.equal(renderProblems(found).split("\n").length, found.length + 1);
      if (outcome.kind === "invalid") {
        assert.ok(found.length > 0);
      } else {
        validCount++;
        assert.ok(renderConfig(outcome).length > 0);
      }
    }),
    { numRuns: 1000 },
  );
  assert.ok(validCount > 20, "the inputs must reach both outcomes");
});

function assertFrozen(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  assert.ok(Object.isFrozen(value));
  for (const inner of Object.values(value)) assertFrozen(inner);
}

test("a variable may begin with KRANE_ too, and may not contradict itself", () => {
  assert.equal(config(basis, { env: { KRANE_RPC_PORT: "2" } }).rpcPort, 2);
  assert.equal(config(basis, { env: { KRANE_RPC_PORT: "2", UNKEY_RPC_PORT: "2" } }).rpcPort, 2);
  assert.equal(config(basis, { env: { KRANE_RPC_PORT: "2", UNKEY_RPC_PORT: "" } }).rpcPort, 2);
  assert.deepEqual(
    problems(basis, { env: { KRANE_RPC_PORT: "2", UNKEY_RPC_PORT: "3" } }).map(
      ({ path, message, remedy }) => [path, message, remedy],
    ),
    [["rpc_port", "is set, and so is KRANE_RPC_PORT, to another value", "remove one of them"]],
  );
});

test("the variables of the command line and the image are not taken for mistyped settings", () => {
  const names = ["CONFIG", "CONTEXT", "REGION", "SERVER", "TOKEN", "VERSION", "REVISION"];
  const env = Object.fromEntries(names.map((name) => [`KRANE_${name}`, "us-east-1.aws"]));
  assert.deepEqual(parse(basis, { env }).warnings, []);
  const [typo] = parse(basis, { env: { KRANE_RPC_PROT: "1" } }).warnings;
  assert.equal(typo?.remedy, "did you mean KRANE_RPC_PORT?");
});
