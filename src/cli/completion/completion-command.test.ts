// Completion as a person gets it: the script of the whole program, run by a real bash.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { Argument, Command, Option } from "commander";
import { FakeIo } from "../../../test/support/fake-io.ts";
import { main } from "../main.ts";
import { completedCommands } from "./completion-model.ts";
import { completionScript } from "./completion-scripts.ts";

async function scriptOf(shell: string): Promise<string> {
  const io = new FakeIo();
  assert.equal(await main(["completion", shell], {}, io), 0, io.stderr.text);
  return io.stdout.text;
}

const driver = `
eval "$(cat)"
complete -p krane >/dev/null || exit 1
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_krane
printf '%s\\n' "\${COMPREPLY[@]}"
`;

/** What bash offers for the last word. */
function offered(script: string, ...line: readonly string[]): readonly string[] {
  const options = { input: script, encoding: "utf8", cwd: import.meta.dirname } as const;
  const out = execFileSync("bash", ["--norc", "-c", driver, "bash", ...line], options);
  return out.split("\n").filter((word) => word !== "");
}

const bash = await scriptOf("bash");

test("commands are offered at every level", () => {
  const first = offered(bash, "krane", "");
  for (const command of ["agent", "apply", "completion", "config", "doctor", "render", "help"])
    assert.ok(first.includes(command), command);
  assert.deepEqual(offered(bash, "krane", "ren"), ["render"]);
  assert.deepEqual(offered(bash, "krane", "config", ""), ["check", "print", "help"]);
  assert.deepEqual(offered(bash, "krane", "config", "ch"), ["check"]);
});

test("help is offered the commands that it can explain", () => {
  assert.deepEqual(offered(bash, "krane", "help", "conf"), ["config"]);
  assert.deepEqual(offered(bash, "krane", "config", "help", ""), ["check", "print"]);
});

test("flags are those of the command, and offered where nothing else can stand", () => {
  assert.deepEqual(offered(bash, "krane", "render", "--sh"), ["--show-secrets"]);
  assert.deepEqual(offered(bash, "krane", "agent", "--sh"), []);
  assert.ok(offered(bash, "krane", "config", "print", "").includes("--rpc-port"));
  assert.ok(offered(bash, "krane", "vault", "encrypt", "--k").includes("--keyring"));
});

test("choices are offered for arguments and for the values of flags", () => {
  assert.deepEqual(offered(bash, "krane", "completion", ""), ["bash", "zsh", "fish"]);
  assert.deepEqual(offered(bash, "krane", "get", "dep"), ["deployment", "deployments"]);
  assert.deepEqual(offered(bash, "krane", "get", "polici"), ["policies"]);
  assert.deepEqual(offered(bash, "krane", "render", "-o", ""), ["yaml", "json"]);
  assert.deepEqual(offered(bash, "krane", "doctor", "-o", "t"), ["table"]);
  // As bash splits --output=j.
  assert.deepEqual(offered(bash, "krane", "render", "--output", "=", "j"), ["json"]);
  assert.deepEqual(offered(bash, "krane", "render", "--output", "="), ["yaml", "json"]);
});

test("a value that is being typed is not taken for a command, nor what stands behind it", () => {
  assert.deepEqual(offered(bash, "krane", "render", "--region", ""), []);
  assert.deepEqual(offered(bash, "krane", "render", "--region", "config", "--sh"), ["--show-secrets"]);
  assert.deepEqual(offered(bash, "krane", "exec", "--", "ls", "-"), []);
  assert.deepEqual(offered(bash, "krane", "nonsense", "conf"), []);
});

test("paths are completed where a path is asked for", () => {
  assert.deepEqual(offered(bash, "krane", "render", "-f", "completion-mod"), ["completion-model.ts"]);
});

test("every command and flag of the program is in every script, and nothing that is hidden", async () => {
  const io = new FakeIo();
  await main(["--help"], {}, io);
  const names = [...io.stdout.text.matchAll(/^ {2}([a-z]+)[ |]/gm)].map(([, name = ""]) => name);
  const commands = names.filter((name) => name !== "krane" && !/\d/.test(name));
  for (const shell of ["bash", "zsh", "fish"]) {
    const script = await scriptOf(shell);
    for (const name of commands) assert.ok(script.includes(`'krane ${name}'`), `${shell}: ${name}`);
  }
});

test("a shell that krane does not know is refused", async () => {
  const io = new FakeIo();
  assert.equal(await main(["completion", "tcsh"], {}, io), 64);
  assert.match(io.stderr.text, /bash, zsh, fish/);
});

function smallProgram(): Command {
  const program = new Command("krane").helpOption(false).helpCommand(false);
  program
    .command("send")
    .description("it's sent")
    .helpOption(false)
    .addArgument(new Argument("<what>").choices(["letters", "parcels"]))
    .addOption(new Option("-o, --output <format>", "how").choices(["text", "json"]))
    .option("-f, --file <path>", "from there")
    .option("--to <whom>", "to whom")
    .option("--fast", "soon")
    .addOption(new Option("--secret", "not for people").hideHelp());
  return program;
}

test("the script for fish, of a small program", () => {
  const script = completionScript("fish", completedCommands(smallProgram()));
  const lines = script.split("\n").filter((line) => line.startsWith("complete") || line.startsWith("set -g"));
  const send = `complete -c krane -n '__krane_at "krane send"'`;
  const sendFirst = `complete -c krane -n '__krane_at "krane send" first'`;
  assert.deepEqual(lines, [
    "set -g __krane_commands 'krane' 'krane send'",
    "set -g __krane_valued '-o' '--output' '-f' '--file' '--to'",
    "complete -c krane -f",
    `complete -c krane -n '__krane_at "krane" first' -a send -d 'it\\'s sent'`,
    `${sendFirst} -a 'letters parcels'`,
    `${send} -s o -l output -x -a 'text json' -d 'how'`,
    `${send} -s f -l file -r -F -d 'from there'`,
    `${send} -l to -x -d 'to whom'`,
    `${send} -l fast -d 'soon'`,
  ]);
});

test("the script for zsh is that for bash behind zsh's own way to run it", () => {
  const commands = completedCommands(smallProgram());
  const [compdef, load, ...rest] = completionScript("zsh", commands).trimEnd().split("\n");
  // Run from a file of $fpath, it is the first completion itself, and has to answer.
  assert.equal(rest.pop(), `[[ "\${funcstack[1]}" == _krane ]] && _bash_complete -F _krane`);
  assert.equal(compdef, "#compdef krane");
  assert.equal(load, "autoload -U +X bashcompinit && bashcompinit");
  assert.equal(`${rest.join("\n")}\n`, completionScript("bash", commands));
});

test("the kinds that are offered are those that a command takes", async () => {
  const kinds = ["apps", "deployments", "sentinels", "policies", "environments"];
  const env = { KRANE_SERVER: "http://127.0.0.1:1", KRANE_TOKEN: "nobody-asks-for-it", KRANE_REGION: "a.b" };
  for (const command of ["get", "describe", "delete", "events", "scale", "why"]) {
    const words = offered(bash, "krane", command, "");
    assert.deepEqual(words.slice(0, 2), ["app", "apps"], command);
    for (const kind of kinds) {
      const io = new FakeIo();
      const more = { scale: ["--replicas", "1"], delete: ["--yes"] }[command] ?? [];
      const code = await main([command, kind, "x", ...more], env, io);
      assert.equal(code, words.includes(kind) ? 69 : 64, `${command} ${kind}: ${io.stderr.text}`);
    }
  }
});
