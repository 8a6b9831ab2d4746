import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { releaseNotes } from "./release-notes.ts";
import { stampChangelog } from "./release-version.ts";

const changelog = `# Changelog

Notable changes.

## 1.1.0 (2026-11-16)

- One change that goes
  over two lines, see [the page](docs/page.md#part).
- Another, [elsewhere](https://docs.example/x).

## 1.0.0 (2026-10-01)

- The first.
`;

test("notes are the section of the version, with whole lines and links that work elsewhere", () => {
  assert.equal(
    releaseNotes(changelog, "1.1.0", "https://git.example/krane/blob/v1.1.0"),
    `- One change that goes over two lines, see [the page](https://git.example/krane/blob/v1.1.0/docs/page.md#part).
- Another, [elsewhere](https://docs.example/x).
`,
  );
  assert.equal(releaseNotes(changelog, "1.0.0", "x"), "- The first.\n");
});

test("a version without a section, or with an empty one, has no notes", () => {
  assert.throws(() => releaseNotes(changelog, "1.0", "x"), /nothing under "## 1\.0"/);
  assert.throws(() => releaseNotes("# C\n\n## 2.0.0\n\n## 1.0.0\n\n- x\n", "2.0.0", "x"), /nothing under/);
});

test("this repository's changelog gives notes for its next version", async () => {
  const text = await readFile(fileURLToPath(new URL("../CHANGELOG.md", import.meta.url)), "utf8");
  const notes = releaseNotes(stampChangelog(text, "9.8.7", "2026-11-16"), "9.8.7", "https://git.example");
  assert.ok(notes.startsWith("- "), notes.slice(0, 80));
  for (const line of notes.trimEnd().split("\n")) assert.match(line, /^(- |$)/);
});
