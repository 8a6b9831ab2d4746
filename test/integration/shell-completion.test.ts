// Completion as a person gets it from zsh, fish and bash: the real shells load the script of the whole program, and ask it
// for the names of a control plane. What bash offers from its tables is tested beside the command.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { main } from "../../src/cli/main.ts";
import { bundle } from "../../tools/bundle.ts";
import { type AdminServer, startAdminServer } from "../support/admin-server.ts";
import { FakeIo } from "../support/fake-io.ts";
import { installPackages } from "../support/node/machine.ts";

const shells = ["zsh", "fish"] as const;
const paths = { zsh: "/usr/bin/zsh", fish: "/usr/bin/fish", bash: "/bin/bash" };
const missing = shells.filter((shell) => !existsSync(paths[shell]));
const mayInstall = process.env["CI"] === "true" && process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
if (missing.length > 0 && mayInstall) await installPackages(missing);
const skipped = shells.filter((shell) => !existsSync(paths[shell]));
if (skipped.length > 0)
  console.error(
    `COMPLETION TESTS SKIPPED for ${skipped.join(" and ")}; install: apt-get install --yes --no-install-recommends ${skipped.join(" ")}`,
  );
const skipUnless = (shell: (typeof shells)[number]) =>
  skipped.includes(shell) ? `${shell} is not installed` : false;

let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "krane-completion-"));
  for (const [shell, file] of [
    ["zsh", "_krane"],
    ["fish", "krane.fish"],
    ["bash", "krane.bash"],
  ] as const) {
    const io = new FakeIo();
    assert.equal(await main(["completion", shell], {}, io), 0, io.stderr.text);
    await writeFile(join(folder, file), io.stdout.text);
  }
});

after(() => rm(folder, { recursive: true, force: true }));

// An interactive zsh in a terminal of its own. `krane` is a function that prints its arguments: what was completed. What
// completion asks for goes to the program, where there is one.
const zshDriver = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D; krane() { if [[ \\$1 == complete-words ]]; then command krane \\"\\$@\\"; else print -r -- \\"GOT<\\$*>\\"; fi }; print BEGUN"
until [[ $line == *BEGUN*  && $line != *print* ]]; do zpty -r shell line || exit 1; done
shift
for typed in "$@"; do zpty -w -n shell "krane $typed"$'\\t\\n'; done
zpty -w shell "print ENDED"
until [[ $line == *ENDED* && $line != *print* ]]; do zpty -r shell line || exit 1; print -r -- "$line"; done
zpty -d shell
`;

/** The command lines that zsh makes of these beginnings when Tab is pressed. */
function completedByZsh(...typed: readonly string[]): readonly string[] {
  const args = ["-f", "-c", zshDriver, "zsh", folder, ...typed];
  const out = execFileSync(paths.zsh, args, { encoding: "utf8", cwd: folder, timeout: 60_000 });
  assert.doesNotMatch(out, /unrecognized|not found|parse error/);
  return [...out.matchAll(/GOT<(.*)>/g)].map(([, line = ""]) => line.trimEnd());
}

test("zsh completes commands, flags and paths", { skip: skipUnless("zsh") }, () => {
  assert.deepEqual(completedByZsh("ren", "config ch", "render --sh", "get polici", "render -f krane.f"), [
    "render",
    "config check",
    "render --show-secrets",
    "get policies",
    "render -f krane.fish",
  ]);
});

/** What fish offers for the last word, without the descriptions. */
function offeredByFish(line: string): readonly string[] {
  const script = `source ${join(folder, "krane.fish")}; complete --do-complete ${JSON.stringify(line)}`;
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
  const args = ["--no-config", "-c", script];
  const out = execFileSync(paths.fish, args, { encoding: "utf8", cwd: folder, env, timeout: 60_000 });
  return out.split("\n").flatMap((offer) => offer.split("\t")[0] || []);
}

test("fish completes commands, flags and paths", { skip: skipUnless("fish") }, () => {
  assert.deepEqual(offeredByFish("krane ren"), ["render"]);
  assert.deepEqual(offeredByFish("krane config ch"), ["check"]);
  assert.deepEqual(offeredByFish("krane render --sh"), ["--show-secrets"]);
  assert.deepEqual(offeredByFish("krane get polici"), ["policies"]);
  assert.deepEqual(offeredByFish("krane render -o "), ["json", "yaml"]);
  assert.deepEqual(offeredByFish("krane render -f _kr"), ["_krane"]);
});

// The shells are run without blocking this process, which serves the control plane.
const run = promisify(execFile);

const documents = `apiVersion: krane/v1
kind: Environment
id: env_demo
workspace: ws_demo
project: proj_demo
---
apiVersion: krane/v1
kind: App
id: app_web
name: web
namespace: demo
workspace: ws_demo
project: proj_demo
environment: env_demo
image: web:1
`;

/** A folder with krane as a program, and the variables with which a shell finds it and its control plane. */
async function withKrane(server: AdminServer) {
  await bundle({ outfile: join(folder, "krane") });
  const config = join(folder, "config.toml");
  const contexts = ["production", "preview"].map(
    (name) =>
      `[contexts.${name}]\nserver = "${server.url}"\ntoken = "${server.tokens.readOnly}"\nregion = "local.dev"\n`,
  );
  await writeFile(config, `current = "preview"\n${contexts.join("")}`, { mode: 0o600 });
  const env = {
    ...process.env,
    KRANE_CONFIG: config,
    HOME: folder,
    PATH: `${folder}:${process.env["PATH"]}`,
  };
  const io = new FakeIo({ "web.yaml": documents });
  const target = {
    KRANE_SERVER: server.url,
    KRANE_TOKEN: server.tokens.readWrite,
    KRANE_REGION: "local.dev",
  };
  assert.equal(await main(["apply", "-f", "web.yaml"], target, io), 0, io.stderr.text);
  const [release] = await server.admin.deployments("local.dev");
  const k8sName = release?.spec.k8sName ?? "";
  const instances = [{ k8sName: "web-1-x7k2p" }];
  await server
    .agentClient()
    .reportDeploymentStatus({ change: { case: "update", value: { k8sName, instances } } });
  return env;
}

/** What is completed after `krane`, and what should be offered. */
const lookedUp: readonly (readonly [typed: readonly string[], offered: readonly string[]])[] = [
  [["get", "app", ""], ["web"]],
  [["get", "app/"], ["app/web"]],
  [["describe", "app", "app_"], ["app_web"]],
  [["rollout", "undo", ""], ["web"]],
  [["release", "app/"], ["app/web"]],
  [["scale", "app/"], ["app/web"]],
  [["logs", ""], ["web"]],
  [["logs", "-f", "we"], ["web"]],
  [["logs", "app", ""], ["web"]],
  [["logs", "pod/"], ["pod/web-1-x7k2p"]],
  [["delete", "app", ""], ["app_web"]],
  [["secrets", "list", ""], ["env_demo"]],
  [["context", "use", "prod"], ["production"]],
  [
    ["get", "apps", "--context", ""],
    ["preview", "production"],
  ],
];

const bashDriver = `
source "$1/krane.bash"
shift
COMP_WORDS=(krane "$@")
COMP_CWORD=$#
_krane
printf '%s\\n' "\${COMPREPLY[@]}"
`;

test("bash, zsh and fish complete names of objects, contexts and environments", async (t) => {
  const server = await startAdminServer({ regions: ["local.dev"] });
  t.after(() => server.stop());
  const env = await withKrane(server);
  const options = { env, cwd: folder, encoding: "utf8", timeout: 120_000 } as const;
  await t.test("bash", async () => {
    for (const [typed, offered] of lookedUp) {
      const args = ["--norc", "-c", bashDriver, "bash", folder, ...typed];
      const { stdout } = await run(paths.bash, args, options);
      assert.deepEqual(stdout.split("\n").filter(Boolean), offered, typed.join(" "));
    }
  });
  await t.test("fish", { skip: skipUnless("fish") }, async () => {
    for (const [typed, offered] of lookedUp) {
      const script = `source ${join(folder, "krane.fish")}; complete --do-complete "krane ${typed.join(" ")}"`;
      const { stdout } = await run(paths.fish, ["--no-config", "-c", script], options);
      const words = stdout.split("\n").flatMap((line) => line.split("\t")[0] || []);
      assert.deepEqual(words.sort(), offered, typed.join(" "));
    }
  });
  await t.test("zsh", { skip: skipUnless("zsh") }, async () => {
    // A single candidate is inserted.
    const unique = lookedUp.filter(([, offered]) => offered.length === 1);
    const lines = unique.map(([typed]) => typed.join(" "));
    const { stdout } = await run(paths.zsh, ["-f", "-c", zshDriver, "zsh", folder, ...lines], options);
    const completed = [...stdout.matchAll(/GOT<(.*)>/g)].map(([, line = ""]) => line.trimEnd());
    assert.deepEqual(
      completed,
      unique.map(([typed, offered]) => [...typed.slice(0, -1), ...offered].join(" ")),
    );
  });
});
