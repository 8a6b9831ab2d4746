import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { renderProblems } from "../../config/render.ts";
import { parseServerConfig, type ServerConfig } from "./server-config.ts";

const url = "postgres://krane:pass-of-the-database@db.example/krane";
const tokens = "us-east-1.aws token-number-one-of-it";

function valid(flags: Record<string, string>, text?: string): ServerConfig {
  const file = text === undefined ? {} : { file: { path: "server.toml", text } };
  const outcome = parseServerConfig({ ...file, env: {}, flags });
  return outcome.kind === "valid" ? outcome.config : assert.fail(renderProblems(outcome.problems));
}

function problems(flags: Record<string, string>, text?: string): string {
  const file = text === undefined ? {} : { file: { path: "server.toml", text } };
  const outcome = parseServerConfig({ ...file, env: {}, flags });
  return outcome.kind === "invalid" ? renderProblems(outcome.problems) : assert.fail("it is valid");
}

test("a folder is all that a server needs, and it listens on this machine alone", () => {
  const config = valid({ "data-dir": "/data" });
  assert.deepEqual(config.listen, { host: "127.0.0.1", port: 7091 });
  assert.deepEqual(config.database, { kind: "embedded", dataDir: "/data", postgresBin: undefined });
  assert.deepEqual(config.history, { ageMaxMs: 30 * 86_400_000, entriesMax: 100_000 });
});

test("a file gives the same, with the agent's names for shared settings", () => {
  const config = valid(
    {},
    `[server]
listen = "[::]:8443"
database_url_file = "/run/db.url"
agent_tokens_file = "/run/tokens"
history_age = "48h"
[tls]
cert_file = "c.pem"
key_file = "k.pem"
[observability.logging]
level = "debug"
`,
  );
  assert.deepEqual(config.listen, { host: "::", port: 8443 });
  assert.equal(config.database.kind, "url");
  assert.deepEqual(
    [config.tls?.certFile, config.logLevel, config.history.ageMaxMs],
    ["c.pem", "debug", 172_800_000],
  );
});

test("all problems are reported at once, with a remedy", () => {
  const text = problems({ "tls-cert-file": "c.pem" }, '[server]\nlisten = "7091"\nregion = "x"\n');
  for (const part of [
    "server.listen: is not an address",
    "server.region: is not a known",
    "tls.key_file",
    "server.data_dir: is required",
  ]) {
    assert.ok(text.includes(part), text);
  }
});

test("a server with both databases, or with one of its own and no tokens, is refused", () => {
  assert.match(
    problems({ "data-dir": "d", "database-url": url, "agent-tokens": tokens }),
    /keep one of the two/,
  );
  assert.match(problems({ "database-url": url }), /server\.agent_tokens: is required/);
});

test("tokens are not accepted unencrypted over a network unless that is allowed", () => {
  for (const listen of ["0.0.0.0:7091", "[::]:7091", "10.0.0.1:7091", "krane.example:7091"]) {
    assert.match(problems({ "data-dir": "d", listen }), /plain HTTP from other machines/);
    assert.equal(valid({ "data-dir": "d", listen, "allow-insecure": "true" }).listen.port, 7091);
  }
  for (const listen of ["127.0.0.1:0", "[::1]:1", "localhost:7091"]) valid({ "data-dir": "d", listen });
});

test("neither the database URL nor a token is ever shown, right or wrong", () => {
  const config = valid({ "database-url": url, "agent-tokens": tokens });
  assert.doesNotMatch(
    inspect(config, { depth: 9, showHidden: true }) + JSON.stringify(config),
    /pass-of|number-one/,
  );
  const wrong = problems({
    "database-url": "mysql://u:pass-of-the-database@h/d",
    "agent-tokens": "x, number-one",
  });
  assert.doesNotMatch(wrong, /pass-of|number-one/);
});

test("a server with tracing keeps only the tracing variables of its environment, and no secret", () => {
  const env = {
    UNKEY_SERVER_DATABASE_URL: url,
    UNKEY_SERVER_AGENT_TOKENS: tokens,
    UNKEY_OTEL_ENABLED: "true",
    OTEL_TRACES_EXPORTER: "none",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "api-key=number-one",
  };
  const outcome = parseServerConfig({ env, flags: {} });
  const config = outcome.kind === "valid" ? outcome.config : assert.fail(renderProblems(outcome.problems));
  assert.deepEqual(config.tracing?.env, { OTEL_TRACES_EXPORTER: "none" });
  assert.doesNotMatch(
    inspect(config, { depth: 9, showHidden: true }) + JSON.stringify(config),
    /pass-of|number-one/,
  );
});
