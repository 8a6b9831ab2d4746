// `krane exec` and examples/clients/decrypt-env against the real service: what the program behind them sees.
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { eventually } from "../../support/eventually.ts";
import { buildKrane } from "../../support/krane-process.ts";
import {
  createSecretsPod,
  type ReaderName,
  readerCommand,
  readerNames,
  start,
  tellEnvironment,
} from "./secrets-pod.ts";

let krane: Awaited<ReturnType<typeof buildKrane>>;
before(async () => {
  krane = await buildKrane();
});
after(() => krane.remove());

function run(
  t: TestContext,
  reader: ReaderName,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  timeoutSeconds?: number,
) {
  const { argv, env: more } = readerCommand(reader, krane.program, timeoutSeconds);
  return start(t, [...argv, ...command], { ...env, ...more });
}

const canary = "canary-of-the-test";
// Everything that a shell, JSON or a line-oriented program could stumble over.
const difficult = {
  PLAIN: "hello",
  EMPTY: "",
  CANARY: canary,
  LINES: "first\nsecond\r\n\tthird",
  TRAILING: "\n\n ends in newlines \n\n",
  QUOTES: `"double" 'single' \`id\` $(id) $HOME \${PATH} \\ \\n \\0101 %s %b`,
  GLOB: "* ? [a-z] ~ ; & | < > # !",
  UNICODE: "ä 漢字 😀 \u2028 \u00a0",
  CONTROL: "\u0001\u001b[31m\u007f",
  DIGITS: "\n123\u00017",
  LONG: `${"x".repeat(20_000)}\n"end"\\`,
  lower_case: "1",
  _de: "1",
  IFS: "x",
  LD_LIBRARY_PATH: "/nowhere",
  UNKEY_ROOT_KEY: "a tenant's own variable may begin like krane's",
};

for (const reader of readerNames) {
  describe(reader, () => {
    test("the program sees every variable exactly, its own environment, and nothing of krane's", async (t) => {
      const { env, serve } = await createSecretsPod(t, difficult);
      await serve();
      const given = {
        ...env,
        HOME: "/root",
        PLAIN: "is replaced",
        UNKEY_WORKSPACE_ID: "ws",
        UNKEY_REGION: "local",
        KUBERNETES_SERVICE_HOST: "10.0.0.1",
      };
      const { code, stdout, stderr } = await run(t, reader, tellEnvironment, given).exit;
      assert.deepEqual([code, stderr], [0, ""]);
      const { PWD: _, OLDPWD: __, SHLVL: ___, DECRYPT_ENV_TIMEOUT: ____, ...seen } = JSON.parse(stdout);
      assert.deepEqual(seen, {
        ...difficult,
        PATH: env["PATH"],
        HOME: "/root",
        UNKEY_DEPLOYMENT_ID: env["UNKEY_DEPLOYMENT_ID"],
        UNKEY_ENVIRONMENT_ID: env["UNKEY_ENVIRONMENT_ID"],
        UNKEY_REGION: "local",
      });
    });

    test("a name that no shell can hold reaches the program as well", async (t) => {
      const { env, serve } = await createSecretsPod(t, { "a.b-c": "dotted\n", PLAIN: "too" });
      await serve();
      const { stdout } = await run(t, reader, tellEnvironment, env).exit;
      const seen = JSON.parse(stdout);
      assert.deepEqual([seen["a.b-c"], seen["PLAIN"]], ["dotted\n", "too"]);
    });

    test("without secrets the command is run as it is, and krane is not called", async (t) => {
      const env = { PATH: process.env["PATH"] ?? "", KEPT: "1", UNKEY_TOKEN_PATH: "/none" };
      const { code, stdout } = await run(t, reader, tellEnvironment, env).exit;
      assert.equal(code, 0);
      const seen = JSON.parse(stdout);
      assert.deepEqual([seen["KEPT"], seen["UNKEY_TOKEN_PATH"]], ["1", undefined]);
    });

    test("arguments and exit code go through", async (t) => {
      const { env, serve } = await createSecretsPod(t, { A: "1" });
      await serve();
      const program = "console.log(JSON.stringify(process.argv.slice(1))); process.exit(42)";
      const command = [process.execPath, "-e", program, "--", "a b", "", "*", "$HOME", "--help"];
      const { code, stdout } = await run(t, reader, command, env).exit;
      assert.equal(code, 42);
      assert.deepEqual(JSON.parse(stdout), ["a b", "", "*", "$HOME", "--help"]);
    });

    test("a command that is not there is 127", async (t) => {
      // Not the tester's own: with a folder in it that may not be searched, a command may be there and is 126.
      const { exit } = run(t, reader, ["no-such-command"], { PATH: "/usr/bin:/bin" });
      assert.equal((await exit).code, 127);
    });

    test("whoever is refused does not run, and neither a value nor the token is printed", async (t) => {
      const { env, serve, seekers, pod } = await createSecretsPod(t, { CANARY: canary });
      const served = await serve();
      const refused = { ...env, UNKEY_DEPLOYMENT_ID: "d_other" };
      const { code, stdout, stderr } = await run(t, reader, ["echo", "it ran"], refused).exit;
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /these secrets are not for this/);
      const token = await seekers.tokenOf(pod);
      for (const secret of [canary, token, token.split(".")[1] ?? ""]) assert.ok(!stderr.includes(secret));
      assert.equal(served.decisions.length, 1, "a refusal is not tried again");
    });

    test("a value that is not of this environment stops the program, and is named", async (t) => {
      const { env, serve } = await createSecretsPod(t, { A: "1" });
      await serve();
      const { secrets } = JSON.parse(
        Buffer.from(env["UNKEY_ENCRYPTED_ENV"] ?? "", "base64").toString("utf8"),
      );
      const foreign = Buffer.from('{"ring":"env_b","value":"x"}').toString("base64");
      const blob = Buffer.from(JSON.stringify({ secrets: { ...secrets, FOREIGN: foreign } }));
      const given = { ...env, UNKEY_ENCRYPTED_ENV: blob.toString("base64") };
      const { code, stdout, stderr } = await run(t, reader, ["echo", "it ran"], given).exit;
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /FOREIGN/);
    });

    test("waits for the end of an outage, and reads the token again", async (t) => {
      const { env, serve, cluster, writeToken, seekers, pod } = await createSecretsPod(t, { A: "1" });
      await writeToken("of.before.rotation");
      const down = { kind: "whole", status: 503, body: {} } as const;
      const heal = cluster.server.faults.intercept(({ path }) =>
        path.endsWith("/tokenreviews") ? down : undefined,
      );
      const reading = run(t, reader, tellEnvironment, env);
      // First connections are refused, then krane is up but cannot reach Kubernetes.
      const served = await serve();
      await eventually("it was asked", () => assert.ok(served.decisions.length > 0, "not yet"));
      await writeToken(await seekers.tokenOf(pod));
      heal();
      const { code, stdout } = await reading.exit;
      assert.equal(code, 0);
      assert.equal(JSON.parse(stdout)["A"], "1");
    });

    test("a pod that desired state does not name yet waits until it does", async (t) => {
      const { env, serve, seekers } = await createSecretsPod(t, { A: "1" });
      let isNamed = false;
      const served = await serve({ find: (key) => (isNamed ? seekers.desired.find(key) : undefined) });
      const reading = run(t, reader, tellEnvironment, env);
      await eventually("it was asked", () => assert.ok(served.decisions.length > 0, "not yet"));
      isNamed = true;
      const { code, stdout } = await reading.exit;
      assert.equal(code, 0);
      assert.equal(JSON.parse(stdout)["A"], "1");
      assert.equal(served.decisions[0]?.outcome.kind, "undecided");
    });

    test("an outage that does not end is told with what to look at", async (t) => {
      const { env } = await createSecretsPod(t, { A: "1" });
      const { code, stdout, stderr } = await run(t, reader, ["echo", "it ran"], env, 0).exit;
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /within 0 s[\s\S]*(does krane run|check that krane is running)/);
    });

    test("a pod that is not set up right is 78, and the variable is named", async (t) => {
      const { env, folder } = await createSecretsPod(t, { A: "1" });
      const wrong: readonly [name: string, value: string][] = [
        ["UNKEY_ENCRYPTED_ENV", "no base64!"],
        ["UNKEY_PROVIDER_ENDPOINT", ""],
        ["UNKEY_PROVIDER_ENDPOINT", "ftp://krane"],
        ["UNKEY_PROVIDER_ENDPOINT", "http://krane.example.com"],
        ["UNKEY_PROVIDER_ENDPOINT", "http://127.0.0.1.example.com"],
        ["UNKEY_PROVIDER_ENDPOINT", "http://krane:x@krane.example.com"],
        ["UNKEY_DEPLOYMENT_ID", ""],
        ["UNKEY_ENVIRONMENT_ID", ""],
      ];
      for (const [name, value] of wrong) {
        const { code, stdout, stderr } = await run(t, reader, ["echo", "it ran"], { ...env, [name]: value })
          .exit;
        assert.deepEqual([code, stdout], [78, ""], `${name}=${value}`);
        assert.ok(stderr.includes(name), stderr);
      }
      const missing = { ...env, UNKEY_TOKEN_PATH: `${folder}/none` };
      const { code, stderr } = await run(t, reader, ["echo", "it ran"], missing).exit;
      assert.equal(code, 78);
      assert.ok(stderr.includes(`${folder}/none`));
    });

    test("SIGTERM while waiting for krane ends it", async (t) => {
      const { env, serve, cluster } = await createSecretsPod(t, { A: "1" });
      cluster.server.faults.intercept(({ path }) =>
        path.endsWith("/tokenreviews") ? { kind: "whole", status: 503, body: {} } : undefined,
      );
      const served = await serve();
      const reading = run(t, reader, ["echo", "it ran"], env);
      await eventually("it was asked", () => assert.ok(served.decisions.length > 0, "not yet"));
      reading.child.kill("SIGTERM");
      const { code, stdout } = await reading.exit;
      assert.deepEqual([code, stdout], [143, ""]);
    });

    for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const) {
      test(`${signal} reaches the program`, async (t) => {
        const program = `
          process.on("${signal}", () => { console.log("got it"); process.exit(7); });
          // Were the reader to die of the signal, nobody else would end it.
          const parent = process.ppid;
          setInterval(() => process.ppid === parent || process.exit(9), 50);
          console.log("ready");`;
        const env = { PATH: process.env["PATH"] ?? "" };
        const running = run(t, reader, [process.execPath, "-e", program], env);
        await eventually("it listens", () => assert.match(running.output().stdout, /ready/));
        running.child.kill(signal);
        const { code, stdout } = await running.exit;
        assert.deepEqual([code, stdout], [7, "ready\ngot it\n"]);
      });
    }
  });
}

test("krane exec: a program that a signal ends is 128 and its number", async (t) => {
  const env = { PATH: process.env["PATH"] ?? "" };
  const { exit } = run(t, "krane exec", ["sh", "-c", "kill -KILL $$"], env);
  assert.equal((await exit).code, 137);
});

test("krane exec: a file that is no program is 126, and its help has examples", async (t) => {
  const env = { PATH: process.env["PATH"] ?? "" };
  assert.equal((await run(t, "krane exec", ["/etc/passwd"], env).exit).code, 126);
  const help = await start(t, [krane.program, "exec", "--help"], env).exit;
  assert.equal(help.code, 0);
  assert.match(help.stdout, /krane exec -- node server\.js/);
  assert.equal((await start(t, [krane.program, "exec"], env).exit).code, 64);
});
