// A part of a Markdown file that code generates: compared by tests, rewritten when
// UPDATE_GOLDEN=1 is set, so that a document cannot say something else than the code.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot, readProjectFile } from "./project-files.ts";

export function assertGoldenSection(file: string, marker: string, expected: string): void {
  const [begin, end] = [`<!-- ${marker}:begin -->`, `<!-- ${marker}:end -->`];
  const text = readProjectFile(file);
  const from = text.indexOf(begin);
  const to = text.indexOf(end);
  assert.ok(from >= 0 && to > from, `${file} needs the markers ${begin} and ${end}`);
  const body = text.slice(from + begin.length, to);
  const wanted = `\n${expected.trim()}\n`;
  if (body === wanted) return;
  if (process.env["UPDATE_GOLDEN"] === "1") {
    writeFileSync(join(projectRoot, file), text.slice(0, from + begin.length) + wanted + text.slice(to));
    return;
  }
  assert.equal(body, wanted, `${file} is not what the code says; UPDATE_GOLDEN=1 rewrites it`);
}
