import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeIo } from "../../test/support/fake-io.ts";
import { generateMasterKey } from "../vault/master-keys.ts";
import { main } from "./main.ts";

async function check(argv: readonly string[], files: Readonly<Record<string, string>>) {
  const io = new FakeIo(files);
  const code = await main(["config", "check", ...argv], {}, io);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

const ok = { code: 0, stdout: "ok\n", stderr: "" };

describe("krane config check server", () => {
  const argv = ["server", "--config", "server.toml"];
  const token = "a-token-of-sixteen-characters";

  test("says ok of a file that a server can run with, and reads the files that it names", async () => {
    const files = {
      "server.toml": `[server]\ndatabase_url_file = "url"\nagent_tokens_file = "agents"\nadmin_tokens_file = "people"`,
      url: "postgres://krane:secret@db:5432/krane\n",
      agents: `us-east-1.aws ${token}\n`,
      people: `ann read-write ${token}-of-ann\n`,
    };
    assert.deepEqual(await check(argv, files), ok);
  });

  test("says everything that is wrong with the file, with line and remedy", async () => {
    const text = '[server]\nlistn = "127.0.0.1:1"\ndata_dir = "d"\nstream_rate = 0\n';
    const { code, stdout, stderr } = await check(argv, { "server.toml": text });
    assert.deepEqual([code, stdout], [78, ""]);
    assert.match(stderr, /^server\.toml:2: server\.listn: .*; did you mean server\.listen\?$/m);
    assert.match(stderr, /^server\.toml:4: server\.stream_rate: .*; /m);
  });

  test("says of every file that it names what is wrong with it", async () => {
    const text = `[server]
database_url_file = "url"
agent_tokens_file = "agents"
admin_tokens_file = "none"
[tls]
cert_file = "cert"
key_file = "key"
`;
    const files = { "server.toml": text, url: "mysql://db", agents: "short", cert: "no pem", key: "no pem" };
    const { code, stdout, stderr } = await check(argv, files);
    assert.deepEqual([code, stdout], [78, ""]);
    assert.match(stderr, /^krane: server\.database_url_file: the content of url .*; /m);
    assert.match(stderr, /^krane: server\.agent_tokens_file: the content of agents entry 1 .*; /m);
    assert.match(stderr, /^krane: server\.admin_tokens_file: cannot read none: no such file$/m);
    assert.match(stderr, /^krane: tls\.cert_file: /m);
    assert.equal(stderr.trimEnd().split("\n").length, 4);
  });

  test("shows where the URL of a database is and how to write one, but not its value", async () => {
    const text = `[server]\ndatabase_url_file = "/run/db.url"\nagent_tokens = ["a.b ${token}"]\n`;
    for (const url of ["mysql://ann:hunter2@db/krane", "hunter2", "", "postgres://ann:hunter2@:x"]) {
      const { code, stdout, stderr } = await check(argv, { "server.toml": text, "/run/db.url": url });
      assert.deepEqual([code, stdout], [78, ""]);
      assert.match(stderr, /^krane: server\.database_url_file: the content of \/run\/db\.url [^;]+; .+\n$/);
      assert.doesNotMatch(stderr, /redacted|hunter2|ann/);
      if (url !== "") assert.match(stderr, /postgres:\/\/.*user:password@host:5432\/database$/m);
    }
  });

  test("finds a token that people and agents have in common, as a start would", async () => {
    const lists = `agent_tokens = ["a.b ${token}"]\nadmin_tokens = ["ann read-only ${token}"]\n`;
    const { code, stderr } = await check(argv, { "server.toml": `[server]\ndata_dir = "d"\n${lists}` });
    assert.equal(code, 78);
    assert.match(
      stderr,
      /^krane: server\.admin_tokens: the token of ann is also an agent token of region a\.b; /,
    );
    assert.doesNotMatch(stderr, new RegExp(token));
  });

  test("takes the flags of a server", async () => {
    assert.deepEqual(await check(["server", "--data-dir", "d"], {}), ok);
    assert.equal((await check(["server", "--rpc-port", "1"], {})).code, 64);
    assert.equal((await check(["server", "surplus", "--data-dir", "d"], {})).code, 64);
  });
});

describe("krane config check vault", () => {
  const argv = ["vault", "-c", "vault.toml"];
  const text = `listen_host = "127.0.0.1"\n[vault]\ntoken_file = "token"\nmaster_keys_file = "keys"\n[vault.file]\npath = "d"\n`;

  test("says ok of a file that a vault can be served with", async () => {
    const files = {
      "vault.toml": text,
      token: "a-token-of-sixteen-characters",
      keys: `${generateMasterKey(0)}\n`,
    };
    assert.deepEqual(await check(argv, files), ok);
  });

  test("says what is missing, and what is wrong with the files that it names", async () => {
    const missing = await check(argv, { "vault.toml": "[vault.file]\npath = 'd'\n" });
    assert.equal(missing.code, 78);
    assert.match(missing.stderr, /^vault\.toml:2: vault\.file\.path: needs vault\.master_keys; set /m);
    assert.match(missing.stderr, /^vault\.toml.*: vault\.token: is required.*; set vault\.token/m);
    const broken = await check(argv, { "vault.toml": text, keys: "bm90IGEga2V5\n" });
    assert.equal(broken.code, 78);
    assert.match(broken.stderr, /^krane: vault\.token_file: cannot read token: no such file$/m);
    assert.match(broken.stderr, /^krane: vault\.master_keys: entry 1 .*krane vault keygen/m);
  });
});

test("krane config check says of a server's file whose it is", async () => {
  const { code, stderr } = await check([], { "krane.toml": '[server]\ndata_dir = "d"\n' });
  assert.equal(code, 78);
  assert.match(
    stderr,
    /^krane\.toml:1: server: is a section for krane server; .* krane config check server$/m,
  );
});

test("krane config check passes over no option that stands before the kind of file", async () => {
  const env = { UNKEY_SERVER_DATA_DIR: "d" };
  for (const option of ["--config=server.toml", "--rpc-port=1"]) {
    const io = new FakeIo({ "server.toml": "broken" });
    const code = await main(["config", "check", option, "server"], env, io);
    assert.deepEqual([code, io.stdout.text], [64, ""]);
    assert.match(io.stderr.text, /^krane: put options after server: krane config check server --/);
  }
});

test("krane config check names a word that it does not know, and the one that may be meant", async () => {
  const help = "See --help.\n";
  for (const argv of [["servre"], ["servre", "--config", "server.toml"], ["sever"]]) {
    const { code, stdout, stderr } = await check(argv, {});
    assert.deepEqual([code, stdout], [64, ""]);
    assert.equal(stderr, `krane: unknown command '${argv[0]}'\n(Did you mean server?)\n${help}`);
  }
  for (const word of ["agent", "krane.toml"]) {
    const { code, stderr } = await check([word], { "krane.toml": "" });
    assert.equal(code, 64);
    assert.equal(
      stderr,
      `krane: unknown command '${word}'\n(use server, vault, or nothing for an agent; give the file with --config)\n${help}`,
    );
  }
});
