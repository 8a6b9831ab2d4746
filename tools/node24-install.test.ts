// The installation of Node 24, with a program in place of npm.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("node24/install.mjs", import.meta.url));
const name = `node-${process.platform}-${process.arch}`;
const hasPackage = process.platform === "linux" && ["arm64", "x64"].includes(process.arch);

/** `npm` counts its calls in `calls`, and installs the package with the given one; never with 0. */
function install(t: TestContext, worksAtCall: number) {
  const folder = mkdtempSync(join(tmpdir(), "krane-node24-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "bin"));
  copyFileSync(script, join(folder, "install.mjs"));
  const bin = join(folder, "node_modules", name, "bin");
  const npm = `#!/bin/sh
echo call >> ${folder}/calls
if [ "$(wc -l < ${folder}/calls)" -eq ${worksAtCall} ]; then mkdir -p ${bin} && touch ${bin}/node; fi
`;
  writeFileSync(join(folder, "bin", "npm"), npm);
  chmodSync(join(folder, "bin", "npm"), 0o755);
  const { status, stderr } = spawnSync(process.execPath, [join(folder, "install.mjs")], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${join(folder, "bin")}:${process.env["PATH"] ?? ""}` },
  });
  return { status, stderr, isInstalled: existsSync(join(bin, "node")) };
}

test("a download that npm left out is retried", { skip: !hasPackage }, (t) => {
  const { status, stderr, isInstalled } = install(t, 2);
  assert.deepEqual([status, isInstalled], [0, true]);
  assert.equal(stderr, `npm left out ${name} without an error (attempt 1 of 3)\n`);
});

test("a download that npm keeps leaving out is an error that says so", { skip: !hasPackage }, (t) => {
  const { status, stderr } = install(t, 0);
  assert.equal(status, 1);
  assert.match(
    stderr,
    /\nNode 24 is not installed: npm did not download node-\S+; check the network and npm's registry\n$/,
  );
});
