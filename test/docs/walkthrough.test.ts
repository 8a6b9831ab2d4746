import assert from "node:assert/strict";
import { test } from "node:test";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const sections = readProjectFile("docs/walkthrough.md").split(/^## /m).slice(1);

function stopsOf(section: string) {
  const rows = section.matchAll(/^\| \d+ \| \[`([^`]+)`\]\(\.\.\/src\/([^)]+)\): (`[^|]+`) \|/gm);
  return [...rows].map(([, shown, file, names = ""]) => {
    assert.equal(shown, file);
    return { file: `src/${file}`, names: [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name) };
  });
}

function declares(file: string, name: string): boolean {
  const declaration = `^(export )?(async )?(function\\*?|class|const) ${name}\\b|^ +(private |override )?(async )?\\*?${name}[(<]`;
  return new RegExp(declaration, "m").test(readProjectFile(file));
}

test("every function on the page is in the file that the page names", () => {
  const known = new Set(projectFiles(/^src\/.*\.ts$/));
  const stops = sections.flatMap(stopsOf);
  assert.ok(stops.length > 60, "the tables are read");
  const missing = stops.flatMap(({ file, names }) =>
    known.has(file)
      ? names.filter((name) => !declares(file, name)).map((name) => `${file}: ${name}`)
      : [file],
  );
  assert.deepEqual(missing, []);
});

test("each section says how many files are on its way", () => {
  assert.equal(sections.length, 3);
  for (const section of sections) {
    const files = new Set(stopsOf(section).map(({ file }) => file));
    assert.match(section, new RegExp(`\\b${files.size} files\\b`));
  }
});
