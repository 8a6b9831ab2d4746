import assert from "node:assert/strict";
import { lstat, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { parseServerConfig } from "./config/server-config.ts";
import { adminTokensName, agentTokensName } from "./embedded/data-folder.ts";
import { openAdminTokens, openAgentTokens, writePrivately } from "./token-files.ts";

async function serverOn(t: TestContext) {
  const dataDir = await mkdtemp(join(tmpdir(), "krane-tokens-"));
  t.after(() => rm(dataDir, { recursive: true, force: true }));
  const outcome = parseServerConfig({ env: {}, flags: { "data-dir": dataDir } });
  assert.ok(outcome.kind === "valid");
  let made = 0;
  const deps = {
    clock: new FakeClock(),
    log: createQuietLog(),
    readTextFile: (path: string) => readFile(path, "utf8"),
    createToken: () => `token-number-000${++made}`,
  };
  return [
    {
      path: join(dataDir, agentTokensName),
      line: /^local\.dev token-number-000\d$/m,
      open: () => openAgentTokens(outcome.config, deps),
    },
    {
      path: join(dataDir, adminTokensName),
      line: /^admin read-write token-number-000\d$/m,
      open: () => openAdminTokens(outcome.config, deps),
    },
  ];
}

test("a first start makes a tokens file for its owner alone, and a second one keeps it", async (t) => {
  for (const { path, line, open } of await serverOn(t)) {
    await open();
    const text = await readFile(path, "utf8");
    assert.match(text, line);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const tokens = await open();
    assert.equal(await readFile(path, "utf8"), text);
    const secret = await tokens?.source.current(new AbortController().signal);
    assert.match(secret?.reveal() ?? "", line, "what was written can be read");
  }
});

test("an existing file that cannot be read is not replaced", async (t) => {
  for (const { path, open } of await serverOn(t)) {
    await mkdir(path);
    await assert.rejects(open(), { name: "ServerError", code: "tokens_unreadable" });
    assert.ok((await stat(path)).isDirectory());
  }
});

test("with a database of your own nothing is made up, and there is no admin API unless tokens are given", async () => {
  const flags = { "database-url": "postgres://x/y", "agent-tokens": "a.b token-of-the-agents" };
  const outcome = parseServerConfig({ env: {}, flags });
  assert.ok(outcome.kind === "valid");
  const deps = {
    clock: new FakeClock(),
    log: createQuietLog(),
    readTextFile: () => Promise.reject(new Error("no file")),
    createToken: () => assert.fail("no token is made up"),
  };
  assert.equal(await openAdminTokens(outcome.config, deps), undefined);
  assert.equal((await openAgentTokens(outcome.config, deps)).path, undefined);
});

test("a planted link is not followed, and an existing file is not reused with its permissions", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "krane-tokens-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "cli.toml");
  const precious = join(folder, "precious");
  await writeFile(precious, "as it was");
  await symlink(precious, `${path}.new`);
  await writePrivately(path, "token");
  assert.equal(await readFile(precious, "utf8"), "as it was");
  assert.ok((await lstat(path)).isFile());
  await writeFile(`${path}.new`, "of a write that was cut off", { mode: 0o644 });
  await writePrivately(path, "another");
  assert.equal(await readFile(path, "utf8"), "another");
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});
