// Replays the tour of the README against a real `krane dev`, with the program as it is built.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { cliContextPath, kubeconfigPath } from "../../src/cli/dev-command.ts";
import { eventually } from "../support/eventually.ts";
import { buildKrane, startKrane } from "../support/krane-process.ts";
import { projectRoot, readProjectFile } from "../support/project-files.ts";
import { normalised, sessionOf } from "../support/shown-session.ts";

const session = sessionOf(readProjectFile("README.md"), "krane-session");
const commands = session.filter(({ command }) => !command.startsWith("export "));

/** A folder that looks like the project to whoever follows the README: bin/krane and examples/. */
async function createFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "krane-tour-"));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const { program, remove } = await buildKrane();
  await mkdir(join(folder, "bin"));
  await rename(program, join(folder, "bin", "krane"));
  await remove();
  await cp(join(projectRoot, "examples"), join(folder, "examples"), { recursive: true });
  return folder;
}

/** What a person sees of a command: both outputs, as on a terminal, but for the progress that a terminal writes over. */
function type(command: string, folder: string, env: Readonly<Record<string, string>>): Promise<string> {
  const options = { cwd: folder, env: { PATH: process.env["PATH"], ...env }, timeout: 120_000 };
  return new Promise((resolve, reject) => {
    execFile("/bin/sh", ["-c", command], options, (error, stdout, stderr) => {
      if (error?.killed) reject(new Error(`${command}: no end; ${stderr}`));
      else resolve(`${stdout}${stderr.replaceAll(/^(?:waiting for |app\/\S+: ).*\n/gm, "")}`);
    });
  });
}

test("the tour in the README gives the output shown there", async (t) => {
  const words = commands.map(({ command }) => command.split(" ")[1]);
  for (const word of ["apply", "get", "why", "release", "rollout", "delete"])
    assert.ok(words.includes(word), word);
  const folder = await createFolder(t);
  const ports = ["rpc", "metrics", "control", "kube"].flatMap((name) => [`--${name}-port`, "0"]);
  const program = join(folder, "bin", "krane");
  const dev = startKrane(t, program, ["dev", "--headless", ...ports], { HOME: folder });
  let said = "";
  dev.child.stdout?.on("data", (text: string) => {
    said += text;
  });
  await eventually("krane dev is ready", () => assert.match(said, /all 3 deployments are ready/));
  const KRANE_CONFIG =
    /^export KRANE_CONFIG=(.+)$/m.exec(said)?.[1] ?? assert.fail("it names no KRANE_CONFIG");
  for (const { command, output } of commands)
    assert.equal(normalised(await type(command, folder, { KRANE_CONFIG })), normalised(output), command);
  dev.child.kill("SIGTERM");
  assert.equal((await dev.exit).code, 0);
});

test("the tour begins with the file that krane dev writes", () => {
  const path = cliContextPath(kubeconfigPath({ HOME: "~" }, 7443) ?? "");
  assert.equal(session[0]?.command, `export KRANE_CONFIG=${path}`);
});
