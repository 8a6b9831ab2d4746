// Completion as a person gets it from zsh and fish: the real shells load the script of the whole program. bash is tested
// beside the command.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { FakeIo } from "../support/fake-io.ts";
import { installPackages } from "../support/node/machine.ts";

const shells = ["zsh", "fish"] as const;
const paths = { zsh: "/usr/bin/zsh", fish: "/usr/bin/fish" };
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
  ] as const) {
    const io = new FakeIo();
    assert.equal(await main(["completion", shell], {}, io), 0, io.stderr.text);
    await writeFile(join(folder, file), io.stdout.text);
  }
});

after(() => rm(folder, { recursive: true, force: true }));

// An interactive zsh in a terminal of its own. `krane` is a function that prints its arguments: what was completed.
const zshDriver = `
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D; krane() { print -r -- \\"GOT<\\$*>\\" }; print BEGUN"
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
