import assert from "node:assert/strict";
import { test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { FakeIo } from "../support/fake-io.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const readme = readProjectFile("README.md");

test("the README opens with the two commands", () => {
  const firstBlock = /```sh\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  assert.deepEqual(
    [...firstBlock.matchAll(/^(make \w+)/gm)].map(([, command]) => command),
    ["make dev", "make test"],
  );
});

test("every make target that a document names exists, and every target has its line in make help", () => {
  const makefile = readProjectFile("Makefile");
  const targets = new Set([...makefile.matchAll(/^([a-z0-9-]+):/gm)].map(([, name]) => name));
  const explained = new Set([...makefile.matchAll(/^([a-z0-9-]+):.*## /gm)].map(([, name]) => name));
  assert.deepEqual(
    [...targets].filter((name) => !explained.has(name)),
    [],
  );
  const unknown = projectFiles(/\.md$/).flatMap((name) =>
    [...readProjectFile(name).matchAll(/`(?:[A-Z_]+=\S+ )*make ([a-z0-9-]+)|^make ([a-z0-9-]+)/gm)]
      .map(([, quoted, typed]) => quoted ?? typed ?? "")
      .filter((target) => !targets.has(target))
      .map((target) => `${name}: make ${target}`),
  );
  assert.deepEqual(unknown, []);
});

test("every krane command in the README runs as shown", async () => {
  const commands = [...readme.matchAll(/^bin\/krane (.+?)(?:\s+#.*)?$/gm)].map(([, args = ""]) =>
    args.split(/\s+/),
  );
  assert.ok(commands.length >= 4);
  for (const args of commands) {
    // These run until they are stopped; tests of the process cover them.
    if (args[0] === "agent" || args[0] === "dev") continue;
    const io = new FakeIo({ "examples/krane.toml": readProjectFile("examples/krane.toml") });
    assert.equal(await main(args, {}, io), 0, args.join(" "));
  }
});

test("the broken configuration in the README gives the output shown there", () => {
  const shown = /\$ krane config check\n([\s\S]*?)```/.exec(readme)?.[1];
  assert.equal(shown, readProjectFile("testdata/config/invalid/several-mistakes.expected.txt"));
});
