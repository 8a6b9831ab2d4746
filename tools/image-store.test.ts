// Images without root: in a mount namespace that has an account with a range of ids, or one without.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { access, chmod, chown, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { inspectMachine } from "../test/support/node/machine.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const id = 61234;
const machine = await inspectMachine();
const hasMapper = await access("/usr/bin/newuidmap").then(
  () => true,
  () => false,
);
const skip = machine.kind === "able" ? !hasMapper && "Debian's package uidmap is missing" : machine.what;

/** Reads image-store.ts from /mnt, because the account may not enter every checkout. */
const program = `
import { withImageStore } from "/mnt/tools/image-store.ts";
const { signal } = new AbortController();
try {
  await withImageStore(async (store) => {
    await store.build({ tag: "built", dockerfile: "context/Dockerfile", context: "context" });
    await store.save("built", "built.tar");
  }, signal);
  console.log("built");
} catch (error) {
  console.log(error.message);
}`;

const asAccount = `
set -eu
for file in passwd subuid subgid; do mount --bind "$file" "/etc/$file"; done
mount --bind "$1" node
mount --bind "$2" /mnt
shift 2
exec setpriv --reuid=${id} --regid=${id} --clear-groups --inh-caps=-all \\
  env HOME="$PWD" TMPDIR="$PWD/tmp" ./node --import /mnt/node_modules/tsx/dist/loader.mjs --input-type=module --eval "$1"`;

/** The folder of the account, and what its program prints. */
async function build(t: TestContext, ranges: string) {
  const home = await mkdtemp(join(tmpdir(), "krane-rootless-"));
  t.after(() => rm(home, { recursive: true, force: true }));
  await chmod(home, 0o755);
  await mkdir(join(home, "tmp"));
  await mkdir(join(home, "context/closed"), { recursive: true });
  const files = {
    passwd: `root:x:0:0::/root:/bin/sh\nbuilder:x:${id}:${id}::${home}:/bin/sh\n`,
    subuid: ranges,
    subgid: ranges,
    node: "",
    "context/closed/file": "",
    "context/Dockerfile": "FROM scratch\nCOPY --chown=7:7 closed /closed\n",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(home, name), text);
  await chmod(join(home, "context/closed"), 0o555);
  for (const folder of [home, join(home, "tmp")]) await chown(folder, id, id);
  const shell = ["bash", "-c", asAccount, "account", process.execPath, root, program];
  const options = { cwd: home, maxBuffer: 2 ** 24 };
  const args = ["--mount", "--propagation=private", ...shell];
  const { stdout } = await promisify(execFile)("unshare", args, options);
  return { home, printed: stdout.trim() };
}

test("an account with a range of ids builds an image, and leaves nothing of its store", {
  skip,
}, async (t) => {
  const { home, printed } = await build(t, "builder:700000:65536\n");
  assert.equal(printed, "built");
  await access(join(home, "built.tar"));
  const left = (await readdir(join(home, "tmp"))).filter((name) => name.startsWith("krane-"));
  assert.deepEqual(left, []);
});

test("where programs are missing, the command that installs all of them is printed", async (t) => {
  const empty = await mkdtemp(join(tmpdir(), "krane-no-tools-"));
  t.after(() => rm(empty, { recursive: true, force: true }));
  const env = { ...process.env, PATH: empty, XDG_CACHE_HOME: empty };
  const args = ["--import", "tsx", "tools/build-image.ts"];
  const building = promisify(execFile)(process.execPath, args, { cwd: root, env });
  await assert.rejects(building, {
    stderr:
      "image: buildah and mmdebstrap are not installed; as root: apt-get install --yes --no-install-recommends buildah mmdebstrap\n",
  });
});

test("an account without one is told how it gets one", { skip }, async (t) => {
  const { printed } = await build(t, "");
  assert.match(printed, /^images are built as root, or in a user namespace, which builder cannot create/);
  assert.match(printed, /usermod --add-subuids 100000-165535 --add-subgids 100000-165535 builder$/);
});
