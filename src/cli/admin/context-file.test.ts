import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { renderProblems } from "../../config/render.ts";
import { withCurrent } from "./context-command.ts";
import { contextFilePath, parseContextFile } from "./context-file.ts";

const path = "/home/me/.config/krane/config.toml";
const good = `# mine
current = "dev"   # for now

[contexts.dev]
server = "http://127.0.0.1:7091/"
region = "local.dev"
token_file = "tokens/dev"
[contexts.dev.vault]
url = "http://127.0.0.1:7092"
token = "a-vault-token"

[contexts.production]
server = "https://krane.example"
token = "a-long-secret-token"
ca_file = "/etc/ca.pem"
`;

function parse(text: string) {
  const outcome = parseContextFile({ path, text });
  if (outcome.kind === "invalid") assert.fail(renderProblems(outcome.problems));
  return outcome.file;
}

function problemsOf(text: string): string {
  const outcome = parseContextFile({ path, text });
  return outcome.kind === "valid" ? "" : renderProblems(outcome.problems).replaceAll(path, "FILE");
}

describe("the contexts file", () => {
  test("is where KRANE_CONFIG says, else in the user's configuration folder", () => {
    assert.equal(contextFilePath({ KRANE_CONFIG: "x.toml", HOME: "/h" }), "x.toml");
    assert.equal(contextFilePath({ XDG_CONFIG_HOME: "/c", HOME: "/h" }), "/c/krane/config.toml");
    assert.equal(contextFilePath({ HOME: "/h", KRANE_CONFIG: "" }), "/h/.config/krane/config.toml");
    assert.equal(contextFilePath({}), undefined);
  });

  test("holds contexts, with paths relative to its folder", () => {
    const { current, contexts } = parse(good);
    assert.equal(current, "dev");
    const dev = contexts.get("dev");
    assert.equal(dev?.server.url, "http://127.0.0.1:7091");
    assert.equal(dev?.region, "local.dev");
    assert.deepEqual(dev?.server.token, {
      kind: "file",
      path: "/home/me/.config/krane/tokens/dev",
      setting: "contexts.dev.token",
    });
    assert.equal(dev?.vault?.url, "http://127.0.0.1:7092");
    const production = contexts.get("production");
    assert.equal(production?.server.caFile, "/etc/ca.pem");
    assert.equal(production?.region, undefined);
    assert.equal(production?.vault, undefined);
  });

  test("is told everything that is wrong with it, by line, without its secrets", () => {
    const text = problemsOf(`curent = "dev"
[contexts.dev]
server = "ftp://x"
tokn = "s3cr3t"
[contexts.dev.vault]
uri = "x"
[contexts.open]
server = "http://krane.example"
token = "s3cr3t"
token_file = "t"
[contexts."no way"]
`);
    assert.equal(
      text,
      `FILE:1: curent: is not a known setting; did you mean current?
FILE:3: contexts.dev.server: must begin with https:// or http://; use one of these two schemes
FILE:4: contexts.dev.tokn: is not a known setting; did you mean token?
FILE:6: contexts.dev.vault.uri: is not a known setting; did you mean url?
FILE:8: contexts.open.server: would send its token over plain HTTP to a host that is not private; use https://, or reach it through a tunnel to localhost
FILE:9: contexts.open.token: conflicts with token_file; keep one of them
FILE:11: contexts."no way": may contain only letters, digits, "-", "_" and "."; remove the other characters
`,
    );
  });

  test("must have the context that it calls current", () => {
    assert.match(
      problemsOf('current = "x"\n[contexts.a]\n[contexts.b]\n'),
      /current: names a context that does not exist.*the file has a, b/,
    );
    assert.match(problemsOf('current = "x"\n'), /the file has no contexts/);
    assert.match(problemsOf("contexts = 1\n"), /one section per context/);
    assert.match(problemsOf("contexts.a = 1\n"), /is a section/);
  });
});

describe("another current context", () => {
  test("changes one line and nothing else", () => {
    assert.equal(
      withCurrent({ path, text: good }, "production"),
      good.replace('current = "dev"   # for now', 'current = "production"'),
    );
  });

  test("is put on top of a file that had none", () => {
    const text = '[contexts.a]\nserver = "http://127.0.0.1:1"\n';
    assert.equal(withCurrent({ path, text }, "a"), `current = "a"\n${text}`);
  });

  test("is not written where the line cannot be found", () => {
    const text = '"curr\\u0065nt" = "a"\n[contexts.a]\n[contexts.b]\n';
    assert.throws(() => withCurrent({ path, text }, "b"), /krane cannot edit this file; write current = "b"/);
  });
});
