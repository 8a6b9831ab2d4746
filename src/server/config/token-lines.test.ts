import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "smol-toml";
import { Secret } from "../../config/secret.ts";
import { renderCliContext } from "../cli-context.ts";
import { adminTokens, agentTokens, readAdminTokens, readAgentTokens } from "./token-lines.ts";

test("lines of name, role and token are read, and comments are not", () => {
  const outcome = adminTokens().fromFile(
    "# people\n\nann read-write ann-has-a-long-token\n  ci@acme\tread-only  another-long-token \nlea logs lea-has-a-long-token\nbo read-write+logs bo-has-a-long-token\n",
  );
  assert.ok(outcome.kind === "ok");
  assert.deepEqual(
    readAdminTokens(outcome.value).map(({ name, role, token }) => [name, role, token.reveal()]),
    [
      ["ann", "read-write", "ann-has-a-long-token"],
      ["ci@acme", "read-only", "another-long-token"],
      ["lea", "logs", "lea-has-a-long-token"],
      ["bo", "read-write+logs", "bo-has-a-long-token"],
    ],
  );
});

test("a malformed line is rejected by its position, and never quoted", () => {
  const secret = "hush-hush-hush-hush";
  const wrong = [
    "",
    "# nobody",
    secret,
    `ann ${secret}`,
    `ann admin ${secret}`,
    `ann logs+read-write ${secret}`,
    `ann read-write short`,
    `ann read-write ${secret} more`,
    `agent read-write ${secret}`,
    `a b read-only ${secret}`,
  ];
  for (const text of wrong) {
    const outcome = adminTokens().fromFile(text);
    assert.ok(outcome.kind === "bad", text);
    assert.ok(!JSON.stringify(outcome).includes(secret), text);
  }
  const second = adminTokens().fromFile(`ann read-only ${secret}\nbob ${secret}`);
  assert.match(JSON.stringify(second), /entry 2 is not of the form/);
});

test("a list of agents and one of people cannot be taken for one another", () => {
  const token = "a-token-of-some-length";
  assert.equal(agentTokens().fromFile(`ann read-write ${token}`).kind, "bad");
  assert.equal(adminTokens().fromFile(`us-east-1.aws ${token}`).kind, "bad");
  const agents = agentTokens().fromFile(`us-east-1.aws ${token}`);
  assert.ok(agents.kind === "ok");
  assert.deepEqual(
    readAgentTokens(agents.value).map(({ region }) => region),
    ["us-east-1.aws"],
  );
});

test("a context for the command line is TOML, whatever is in it", () => {
  const token = '!"#\\x7f\\token-with-odd-characters~';
  const text = renderCliContext({
    name: "dev",
    server: "http://127.0.0.1:7091",
    region: "local.dev",
    token: new Secret(token),
  });
  assert.deepEqual(JSON.parse(JSON.stringify(parse(text))), {
    current: "dev",
    contexts: { dev: { server: "http://127.0.0.1:7091", region: "local.dev", token } },
  });
});
