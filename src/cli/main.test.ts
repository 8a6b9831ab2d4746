import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { eventually } from "../../test/support/eventually.ts";
import { FakeIo } from "../../test/support/fake-io.ts";
import { fetchHttp1 } from "../../test/support/http-clients.ts";
import { freePort } from "../../test/support/krane-process.ts";
import { type ServedCluster, serveCluster } from "../../test/support/served-cluster.ts";
import { main } from "./main.ts";

const minimal = `region = "local.test"
[control]
url = "http://127.0.0.1:1"
token = "not-a-real-token"
`;

describe("the command line", () => {
  test("help and version are no errors and go to standard output", async () => {
    for (const argv of [
      ["--help"],
      ["help"],
      ["help", "help"],
      ["help", "secrets"],
      ["agent", "--help"],
      ["config", "check", "-h"],
      ["--version"],
      ["version"],
    ]) {
      const io = new FakeIo();
      assert.equal(await main(argv, {}, io), 0, argv.join(" "));
      assert.notEqual(io.stdout.text, "");
      assert.equal(io.stderr.text, "");
    }
  });

  test("wrong usage is 64, said on standard error", async () => {
    for (const argv of [
      [],
      ["nonsense"],
      ["help", "nonsense"],
      ["help", "secrets", "nonsense"],
      ["agent", "--nonsense"],
      ["agent", "surplus"],
      ["agent", "--config"],
      ["config"],
    ]) {
      const io = new FakeIo({ "krane.toml": minimal });
      assert.equal(await main(argv, {}, io), 64, argv.join(" "));
      assert.equal(io.stdout.text, "");
      assert.notEqual(io.stderr.text, "");
    }
  });

  test("a server says why it cannot read a file that its configuration names, as the check does", async () => {
    const text = `[server]\ndatabase_url_file = "/run/db.url"\nagent_tokens = ["a.b a-token-of-sixteen-characters"]\n`;
    for (const argv of [["server"], ["config", "check", "server"]]) {
      const io = new FakeIo({ "server.toml": text });
      assert.equal(await main([...argv, "--config", "server.toml"], {}, io), 78);
      assert.equal(
        io.stderr.text,
        "krane: server.database_url_file: cannot read /run/db.url: no such file\n",
      );
    }
  });

  test("a flag before the command, as kubectl takes it, is told its place", async () => {
    const io = new FakeIo();
    assert.equal(await main(["--context", "dev", "get", "apps"], {}, io), 64);
    assert.match(
      io.stderr.text,
      /^krane: --context belongs behind the command, as in krane get apps --context VALUE\n/,
    );
  });

  test("help for a mistyped command offers the one that may be meant", async () => {
    const io = new FakeIo();
    assert.equal(await main(["help", "secrets", "sett"], {}, io), 64);
    assert.match(io.stderr.text, /^krane: unknown command 'sett'\n\(Did you mean set\?\)\n/);
  });

  test("help of a command within another is that command's", async () => {
    const [asked, flag] = [new FakeIo(), new FakeIo()];
    assert.equal(await main(["help", "secrets", "set"], {}, asked), 0);
    await main(["secrets", "set", "--help"], {}, flag);
    assert.equal(asked.stdout.text, flag.stdout.text);
    assert.match(asked.stdout.text, /^Usage: krane secrets set /);
  });

  test("what was typed does not command the terminal when it is quoted", async () => {
    const clearScreen = "\u001b[2J";
    for (const argv of [
      [clearScreen],
      ["help", clearScreen],
      ["get", "deployments", "-o", clearScreen],
      ["render", "-f", clearScreen],
      ["config", "check", "--config", clearScreen],
    ]) {
      const io = new FakeIo();
      assert.notEqual(await main(argv, {}, io), 0);
      assert.match(io.stderr.text, /\[2J/);
      assert.ok(!io.stderr.text.includes("\u001b"), argv.join(" "));
    }
  });

  test("both ways to ask for the version say the same", async () => {
    const [command, flag] = [new FakeIo(), new FakeIo()];
    await main(["version"], {}, command);
    await main(["--version"], {}, flag);
    assert.equal(command.stdout.text, flag.stdout.text);
  });
});

describe("where the configuration comes from", () => {
  const region = async (argv: string[], env: Record<string, string>, files: Record<string, string>) => {
    const io = new FakeIo(files);
    assert.equal(await main(["config", "print", ...argv], env, io), 0, io.stderr.text);
    return /^region = .*$/m.exec(io.stdout.text)?.[0];
  };
  const named = (name: string) => minimal.replace("local.test", name);

  test("--config wins over UNKEY_CONFIG, which wins over krane.toml here", async () => {
    const files = { "krane.toml": named("here"), "env.toml": named("env"), "flag.toml": named("flag") };
    const env = { UNKEY_CONFIG: "env.toml" };
    assert.match(String(await region(["--config", "flag.toml"], env, files)), /"flag".*flag\.toml:1/);
    assert.match(String(await region([], env, files)), /"env".*env\.toml:1/);
    assert.match(String(await region([], { UNKEY_CONFIG: "" }, files)), /"here".*krane\.toml:1/);
  });

  test("a flag wins over the environment, the environment over the file", async () => {
    const files = { "krane.toml": named("file") };
    const env = { UNKEY_REGION: "variable" };
    assert.match(String(await region([], env, files)), /"variable".*env UNKEY_REGION/);
    assert.match(String(await region(["--region", "flagged"], env, files)), /"flagged".*flag --region/);
  });

  test("no file is needed when the environment has it all", async () => {
    const env = {
      UNKEY_REGION: "local.test",
      UNKEY_CONTROL_PLANE_URL: "http://127.0.0.1:1",
      UNKEY_CONTROL_PLANE_BEARER: "not-a-real-token",
    };
    assert.match(String(await region([], env, {})), /"local.test"/);
  });

  test("a switch needs no value and takes one", async () => {
    for (const [argv, expected] of [
      [["--control-allow-insecure"], "true"],
      [["--control-allow-insecure", "false"], "false"],
      [["--control-allow-insecure=false"], "false"],
    ] as const) {
      const io = new FakeIo({ "krane.toml": minimal });
      assert.equal(await main(["config", "print", ...argv], {}, io), 0, io.stderr.text);
      assert.match(io.stdout.text, new RegExp(`^control.allow_insecure = ${expected} `, "m"));
    }
  });

  test("a file that was asked for and is not there is a bad configuration", async () => {
    for (const [argv, env] of [
      [["--config", "none.toml"], {}],
      [[], { UNKEY_CONFIG: "none.toml" }],
    ] as const) {
      const io = new FakeIo();
      assert.equal(await main(["config", "check", ...argv], env, io), 78);
      assert.match(io.stderr.text, /^none\.toml: cannot be read: no such file; .*\n$/);
    }
  });

  test("an empty path is a bad configuration, and the line begins with the flag", async () => {
    const io = new FakeIo({ "krane.toml": minimal });
    assert.equal(await main(["config", "check", "--config", ""], {}, io), 78);
    assert.match(io.stderr.text, /^--config: names no file; .*\n$/);
  });
});

describe("krane config", () => {
  test("check says ok, and warnings beside it", async () => {
    const io = new FakeIo({ "krane.toml": minimal });
    assert.equal(await main(["config", "check"], { UNKEY_CLUSTER_ID: "local" }, io), 0);
    assert.equal(io.stdout.text, "ok\n");
    assert.match(io.stderr.text, /^warning: UNKEY_CLUSTER_ID: .*\n$/);
  });

  test("check finds every named file that cannot be used", async () => {
    const toml = minimal
      .replace('token = "not-a-real-token"', 'token_file = "token"\nca_file = "ca.pem"')
      .replace("http://", "https://");
    const io = new FakeIo({ "krane.toml": toml });
    assert.equal(await main(["config", "check"], {}, io), 78);
    assert.equal(io.stdout.text, "");
    assert.equal(
      io.stderr.text,
      `krane: control.token_file: cannot read token: no such file
krane: control.ca_file: cannot read ca.pem: no such file
`,
    );
    const complete = new FakeIo({ "krane.toml": toml, token: "not-a-real-token\n", "ca.pem": "x" });
    assert.equal(await main(["config", "check"], {}, complete), 0);
  });

  test("print hides secrets", async () => {
    const io = new FakeIo({ "krane.toml": minimal });
    assert.equal(await main(["config", "print"], {}, io), 0);
    assert.doesNotMatch(io.stdout.text, /not-a-real-token/);
  });

  test("every problem is one line and the exit code is 78", async () => {
    for (const command of [["agent"], ["config", "check"], ["config", "print"]]) {
      const io = new FakeIo({ "krane.toml": `region = ""\nrpc_port = 0\n` });
      assert.equal(await main(command, {}, io), 78);
      assert.equal(io.stdout.text, "");
      assert.equal(io.stderr.text.match(/\n/g)?.length, 4, io.stderr.text);
    }
  });
});

describe("krane agent", () => {
  let cluster: ServedCluster;
  before(async () => {
    cluster = await serveCluster();
  });
  after(() => cluster.stop());
  const createIo = () => new FakeIo({ "krane.toml": minimal, "kube.yaml": cluster.kubeconfig });

  async function startAgent(io: FakeIo, ...flags: string[]) {
    const port = await freePort();
    const argv = ["agent", "--rpc-port", String(port), "--kubernetes-kubeconfig", "kube.yaml", ...flags];
    const exit = main(argv, {}, io);
    const ready = () => fetchHttp1(`http://127.0.0.1:${port}/health/ready`);
    await eventually("it is ready", async () => assert.equal((await ready()).status, 200));
    return { exit, ready };
  }

  test("a signal ends it with 0, and then it listens to no more signals", async () => {
    const io = createIo();
    const { exit, ready } = await startAgent(io);
    io.send("SIGTERM");
    assert.equal(await exit, 0);
    assert.equal(io.signalListeners, 0);
    assert.deepEqual(io.exits, []);
    await assert.rejects(ready(), { code: "ECONNREFUSED" });
  });

  test("a second signal exits at once with the code of that signal", async () => {
    for (const [signal, code] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const io = createIo();
      const { exit } = await startAgent(io);
      io.send("SIGTERM");
      io.send(signal);
      assert.deepEqual(io.exits, [code]);
      await exit;
    }
  });

  test("without any cluster it ends with 78 and one line that says what to do", async () => {
    const io = new FakeIo({ "krane.toml": minimal });
    assert.equal(await main(["agent", "--rpc-port", String(await freePort())], {}, io), 78);
    assert.match(io.stderr.text, /^krane: no Kubernetes cluster configured: [^\n]*kubeconfig[^\n]*\n$/);
  });

  test("a log that nobody reads costs lines, not memory and not the agent", async () => {
    const io = createIo();
    io.stdout.backlogBytes = Number.POSITIVE_INFINITY;
    const { exit } = await startAgent(io);
    io.send("SIGTERM");
    assert.equal(await exit, 0);
    assert.equal(io.stdout.text, "");
  });

  test("says where to look on a terminal or when asked, and otherwise keeps quiet", async () => {
    for (const { isTerminal, flags, announced } of [
      { isTerminal: true, flags: [], announced: true },
      { isTerminal: false, flags: ["--announce"], announced: true },
      { isTerminal: false, flags: [], announced: false },
    ]) {
      const io = createIo();
      io.stdout.isTerminal = isTerminal;
      const { exit } = await startAgent(io, ...flags);
      io.send("SIGTERM");
      await exit;
      assert.equal(io.stderr.text.includes("/health/ready"), announced);
    }
  });
});
