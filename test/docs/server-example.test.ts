// The example of docs/server.md is run against a real server, and its output compared.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { startAdminServer } from "../support/admin-server.ts";

const run = promisify(execFile);

test("the calls with curl in docs/server.md answer what the page says", async (t) => {
  const page = await readFile(new URL("../../docs/server.md", import.meta.url), "utf8");
  const section = /<!-- example: [^\n]*-->([\s\S]*?)<!-- \/example -->/.exec(page)?.[1] ?? "";
  const [, script = "", output = ""] = /```sh\n([\s\S]*?)```\s+```text\n([\s\S]*?)```/.exec(section) ?? [];
  assert.ok(script.includes("curl") && output !== "", "the page has no example");
  const server = await startAdminServer();
  t.after(() => server.stop());
  const folder = await mkdtemp(join(tmpdir(), "krane-docs-"));
  t.after(() => rm(folder, { recursive: true }));
  await mkdir(join(folder, "krane-data"));
  const tokens = `# comment\nadmin read-write ${server.tokens.readWrite}\n`;
  await writeFile(join(folder, "krane-data", "admin-tokens"), tokens);
  assert.ok(script.includes("http://localhost:7091"));
  const adapted = script.replaceAll("http://localhost:7091", server.url);
  const { stdout } = await run("sh", ["-c", adapted], { cwd: folder, env: { PATH: process.env["PATH"] } });
  assert.equal(stdout, output);
});
