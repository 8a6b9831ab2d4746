import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type AdminServer, startAdminServer } from "../../../test/support/admin-server.ts";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { freePort } from "../../../test/support/krane-process.ts";
import { readProjectFile } from "../../../test/support/project-files.ts";
import { createQuietLog } from "../../../test/support/quiet-log.ts";
import { createSystemClock } from "../../concurrency/clock.ts";
import { createControlPlaneServer } from "../../server/control-plane-server.ts";
import { main } from "../main.ts";
import { readTextFile } from "../process/text-file.ts";

let server: AdminServer;
before(async () => {
  server = await startAdminServer({ regions: ["local.dev", "other.dev"] });
});
after(() => server.stop());

interface Call {
  readonly argv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
}

async function run({ argv = ["get", "deployments"], env = {}, files = {} }: Call) {
  const io = new FakeIo(files);
  const code = await main(argv, env, io);
  assert.equal(io.signalListeners, 0);
  return { code, stdout: io.stdout.text, stderr: io.stderr.text };
}

const contexts = (more = "") => `current = "dev"
[contexts.dev]
server = "${server.url}"
region = "local.dev"
token_file = "token"
[contexts.reader]
server = "${server.url}"
region = "other.dev"
token = "${server.tokens.readOnly}"
${more}`;
const files = (more = "") => ({
  "/k/config.toml": contexts(more),
  "/k/token": `${server.tokens.readWrite}\n`,
});
const env = { KRANE_CONFIG: "/k/config.toml" };

describe("where a command goes", () => {
  test("is what the current context says", async () => {
    const { code, stderr } = await run({ env, files: files() });
    assert.equal(code, 0);
    assert.equal(stderr, "no deployments in region local.dev\n");
  });

  test("is changed by a flag, else by the environment", async () => {
    const region = async (argv: readonly string[], more: Record<string, string>) =>
      /in region (\S+)/.exec(
        (await run({ argv: ["get", "deployments", ...argv], env: { ...env, ...more }, files: files() }))
          .stderr,
      )?.[1];
    assert.equal(await region([], { KRANE_CONTEXT: "reader" }), "other.dev");
    assert.equal(await region(["--context", "dev"], { KRANE_CONTEXT: "reader" }), "local.dev");
    assert.equal(await region([], { KRANE_REGION: "other.dev" }), "other.dev");
    assert.equal(await region(["--region", "local.dev"], { KRANE_REGION: "other.dev" }), "local.dev");
    assert.equal(await region([], { KRANE_CONTEXT: "", KRANE_REGION: "" }), "local.dev");
  });

  test("needs no file where flags and environment say it all", async () => {
    const { url, tokens } = server;
    const variables = { KRANE_SERVER: url, KRANE_TOKEN: tokens.readOnly, KRANE_REGION: "local.dev" };
    assert.equal((await run({ env: variables })).code, 0);
    const argv = ["get", "deployments", "--server", url, "--token-file", "t", "--region", "local.dev"];
    assert.equal((await run({ argv, files: { t: tokens.readOnly } })).code, 0);
  });

  test("takes the context's token along to the same control plane only", async () => {
    const same = { ...env, KRANE_SERVER: `${server.url}/` };
    assert.equal((await run({ env: same, files: files() })).code, 0);
  });
});

describe("a bad context exits with 78 and says what to do", () => {
  const cases: readonly (readonly [string, Call, RegExp])[] = [
    [
      "no file, no flags",
      { env: { HOME: "/h" } },
      /no control plane; set it with .*--server.*\/h\/\.config\/krane\/config\.toml.*krane dev/,
    ],
    [
      "a file that is named and missing",
      { env },
      /\/k\/config\.toml: cannot be read: no such file; check KRANE_CONFIG/,
    ],
    ["an unknown context", { env: { ...env, KRANE_CONTEXT: "x" } }, /no context x: the file has dev, reader/],
    [
      "a context without a file",
      { env: { HOME: "/h", KRANE_CONTEXT: "x" } },
      /no context x: the file \/h\S* does not exist/,
    ],
    [
      "a context without a server",
      { env: { ...env, KRANE_CONTEXT: "empty" } },
      /context empty has no control plane; add server/,
    ],
    [
      "a context without a token",
      { env: { ...env, KRANE_CONTEXT: "bare" } },
      /context bare has no token; add token_file/,
    ],
    [
      "a context without a region",
      { env: { ...env, KRANE_CONTEXT: "lost" } },
      /no region; set it with --region.*add region to context lost/,
    ],
    [
      "a token file that is not there",
      { env: { ...env, KRANE_CONTEXT: "gone" } },
      /contexts\.gone\.token_file: cannot read \/k\/nothing/,
    ],
    [
      "a CA file that is not there",
      { env: { ...env, KRANE_CONTEXT: "caless" } },
      /ca_file: cannot read \/k\/no\.pem: no such file/,
    ],
    [
      "a token file of a flag that is not there",
      { argv: ["get", "deployments", "--token-file", "/k/gone"], env },
      /--token-file: cannot read \/k\/gone/,
    ],
    [
      "the token of a context for another control plane, by a variable",
      { env: { ...env, KRANE_SERVER: "http://127.0.0.1:1" } },
      /KRANE_SERVER: the token of context dev is for http:\/\/127\.0\.0\.1:\d+ only; pass one with --token-file or KRANE_TOKEN/,
    ],
    [
      "the token of a context for another control plane, by a flag",
      { argv: ["get", "deployments", "--server", "https://elsewhere.example"], env },
      /--server: the token of context dev is for http/,
    ],
    [
      "the token of a context without a control plane of its own",
      { env: { ...env, KRANE_CONTEXT: "unbound", KRANE_SERVER: "http://127.0.0.1:1" } },
      /KRANE_SERVER: context unbound has a token but no server, so the token is not sent there; pass one/,
    ],
    ["a URL that is none", { env: { ...env, KRANE_SERVER: "localhost" } }, /KRANE_SERVER: is not a URL/],
    [
      "a token in the clear",
      { env: { ...env, KRANE_SERVER: "http://krane.example" } },
      /KRANE_SERVER: would send its token over plain HTTP/,
    ],
    [
      "a token that no header carries",
      { env: { ...env, KRANE_TOKEN: "a b" } },
      /KRANE_TOKEN: contains a character/,
    ],
    ["a region that is none", { env: { ...env, KRANE_REGION: "a/b" } }, /KRANE_REGION: may contain only/],
  ];
  for (const [name, call, expected] of cases)
    test(name, async () => {
      const more = `[contexts.empty]
[contexts.unbound]
token = "${server.tokens.readOnly}"
[contexts.bare]
server = "${server.url}"
[contexts.lost]
server = "${server.url}"
token = "${server.tokens.readOnly}"
[contexts.gone]
server = "${server.url}"
token_file = "nothing"
[contexts.caless]
server = "https://localhost:1"
token = "${server.tokens.readOnly}"
ca_file = "no.pem"
`;
      const isMissing = name === "a file that is named and missing" || call.env?.["HOME"] !== undefined;
      const { code, stdout, stderr } = await run({ ...call, files: isMissing ? {} : files(more) });
      assert.match(stderr, expected);
      assert.match(stderr, /^krane: /);
      assert.equal(code, 78);
      assert.equal(stdout, "");
    });
});

test("a file without a current context asks to choose one", async () => {
  const text = contexts().replace('current = "dev"\n', "");
  const { code, stderr } = await run({ env, files: { "/k/config.toml": text } });
  assert.equal(code, 78);
  assert.equal(
    stderr,
    "krane: no current context; choose one with krane context use NAME; the file has dev, reader\n",
  );
});

describe("a call that fails says what to do, and its exit code says what kind it is", () => {
  test("77 if the token is rejected, without showing it", async () => {
    const { code, stderr } = await run({
      env: { ...env, KRANE_TOKEN: "not-the-right-token" },
      files: files(),
    });
    assert.equal(code, 77);
    assert.match(stderr, /rejected the token; check KRANE_TOKEN\n/);
    assert.doesNotMatch(stderr, /not-the-right-token/);
  });

  test("77 names the flag or the context that the token is from", async () => {
    const argv = ["get", "deployments", "--token-file", "/wrong"];
    const wrong = "not-the-right-token";
    const flag = await run({ argv, env, files: { ...files(), "/wrong": wrong } });
    assert.match(flag.stderr, /rejected the token; check --token-file \/wrong\n/);
    const context = { env: { ...env, KRANE_CONTEXT: "dev" }, files: { ...files(), "/k/token": wrong } };
    assert.match((await run(context)).stderr, /rejected the token; check token_file of context dev\n/);
  });

  test("77 if the token is read-only", async () => {
    const argv = ["delete", "env", "env_x", "--yes"];
    const { code, stderr } = await run({ argv, env: { ...env, KRANE_CONTEXT: "reader" }, files: files() });
    assert.equal(code, 77);
    assert.match(stderr, /^krane: the token bob is read-only; use one with the role read-write/);
  });

  test("77 where it is the token of an agent", async () => {
    assert.equal((await run({ env: { ...env, KRANE_TOKEN: server.tokens.agent }, files: files() })).code, 77);
  });

  test("69 if the connection is refused, with the context if the address comes from it", async () => {
    const KRANE_SERVER = `http://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await run({
      env: { ...env, KRANE_SERVER, KRANE_TOKEN: "not-for-the-context" },
      files: files(),
    });
    assert.equal(code, 69);
    assert.equal(
      stderr,
      `krane: cannot reach ${KRANE_SERVER}: connection refused; check the URL, and that the server is running\n`,
    );
    const own = await run({
      env,
      files: Object.fromEntries(
        Object.entries(files()).map(([path, text]) => [path, text.replaceAll(server.url, KRANE_SERVER)]),
      ),
    });
    assert.match(own.stderr, /^krane: cannot reach \S+ \(context dev\): connection refused/);
  });

  test("69 where somebody else listens", async (t) => {
    const stranger = createServer((_, response) =>
      response.writeHead(404).end("<html>not here</html>"),
    ).listen(0);
    t.after(() => stranger.close());
    await once(stranger, "listening");
    const address = stranger.address();
    const KRANE_SERVER = `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
    const { code, stderr } = await run({
      env: { ...env, KRANE_SERVER, KRANE_TOKEN: "not-for-the-context" },
      files: files(),
    });
    assert.equal(code, 69);
    assert.match(stderr, /does not serve the admin API; check the URL/);
  });

  test("69 where its certificate is not trusted, until ca_file names who signed it", async (t) => {
    const [certFile, keyFile] = ["testdata/tls/first.cert.pem", "testdata/tls/first.key.pem"];
    const pem = new Map([certFile, keyFile].map((name) => [name, readProjectFile(name)]));
    const deps = {
      clock: createSystemClock(),
      log: createQuietLog(),
      readTextFile: async (path: string) => pem.get(path) ?? assert.fail(path),
    };
    const options = { port: 0, host: "127.0.0.1", tls: { certFile, keyFile } };
    const tls = await createControlPlaneServer(server.plane, options, deps).start(
      new AbortController().signal,
    );
    t.after(() => tls.close(AbortSignal.abort()));
    const secure = (more: string) => `[contexts.secure]
server = "https://localhost:${tls.port}"
region = "local.dev"
token_file = "token"
${more}`;
    const call = { env: { ...env, KRANE_CONTEXT: "secure" } };
    const { code, stderr } = await run({ ...call, files: files(secure("")) });
    assert.equal(code, 69);
    assert.match(stderr, /untrusted certificate \(\w+\); set its CA with ca_file/);
    const trusting = { ...files(secure('ca_file = "ca.pem"')), "/k/ca.pem": pem.get(certFile) ?? "" };
    assert.equal((await run({ ...call, files: trusting })).code, 0);
  });

  test("a region that the control plane does not know is said by name", async () => {
    const { code, stderr } = await run({ env: { ...env, KRANE_REGION: "moon.dev" }, files: files() });
    assert.notEqual(code, 0);
    assert.match(stderr, /moon\.dev/);
  });
});

describe("krane context", () => {
  test("list marks the current one", async () => {
    const { code, stdout } = await run({ argv: ["context", "list"], env, files: files() });
    assert.equal(code, 0);
    assert.equal(
      stdout,
      `CURRENT   NAME     SERVER${" ".repeat(server.url.length - 3)}REGION\n` +
        `*         dev      ${server.url}   local.dev\n          reader   ${server.url}   other.dev\n`,
    );
    assert.equal((await run({ argv: ["context", "list"], env: { HOME: "/h" } })).code, 78);
    assert.equal((await run({ argv: ["context", "list"] })).code, 78);
  });

  test("show says where commands go, without the token", async () => {
    const { code, stdout } = await run({
      argv: ["context", "show", "--region", "x.dev"],
      env,
      files: files(),
    });
    assert.equal(code, 0);
    assert.equal(
      stdout,
      `Context:   dev\nServer:    ${server.url}\nRegion:    x.dev\nToken:     in /k/token\n`,
    );
    const reader = await run({ argv: ["context", "show", "--context", "reader"], env, files: files() });
    assert.doesNotMatch(reader.stdout, new RegExp(server.tokens.readOnly));
  });

  test("use changes the file and nothing else of it", async (t) => {
    const folder = await mkdtemp(join(tmpdir(), "krane-context-"));
    t.after(() => rm(folder, { recursive: true }));
    const path = join(folder, "config.toml");
    await writeFile(path, `# mine\n${contexts()}`, { mode: 0o600 });
    const io = Object.assign(new FakeIo(), { readTextFile });
    assert.equal(await main(["context", "use", "reader"], { KRANE_CONFIG: path }, io), 0, io.stderr.text);
    assert.equal(
      await readFile(path, "utf8"),
      `# mine\n${contexts()}`.replace('current = "dev"', 'current = "reader"'),
    );
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.equal(await main(["context", "use", "nobody"], { KRANE_CONFIG: path }, io), 3);
    assert.match(io.stderr.text, /no context nobody in .*; the file has dev, reader/);
  });
});
