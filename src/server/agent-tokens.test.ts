import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { openAgentTokens } from "./agent-tokens.ts";
import { parseServerConfig } from "./config/server-config.ts";
import { tokensName } from "./embedded/data-folder.ts";

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
    createToken: () => `token-number-${++made}`,
  };
  return { path: join(dataDir, tokensName), open: () => openAgentTokens(outcome.config, deps) };
}

test("a first start makes a tokens file for its owner alone, and a second one keeps it", async (t) => {
  const { path, open } = await serverOn(t);
  await open();
  const text = await readFile(path, "utf8");
  assert.match(text, /^local\.dev token-number-1$/m);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  await open();
  assert.equal(await readFile(path, "utf8"), text);
});

test("what is there in its place and cannot be read is not replaced", async (t) => {
  const { path, open } = await serverOn(t);
  await mkdir(path);
  await assert.rejects(open(), { name: "ServerError", code: "tokens_unreadable" });
  assert.ok((await stat(path)).isDirectory());
});
