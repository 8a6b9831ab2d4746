// docs/faults.md against the tests that it names and the faults of the simulation, in both directions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { faults } from "../../sim/adversary.ts";
import { life } from "../../sim/life.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

interface Row {
  readonly id: string;
  readonly coverage: string;
  /** Names of faults and actions of the simulation. */
  readonly simulated: readonly string[];
  readonly tests: readonly string[];
}

const uncovered = "nothing yet";

const [, ...sections] = readProjectFile("docs/faults.md").split("\n## ");
const rows = sections
  .flatMap((section) => section.split("\n").filter((line) => /^\|(?! id \||---)/.test(line)))
  .map((line): Row => {
    const cells = line.split("|").map((cell) => cell.trim());
    assert.ok(cells.length === 6 && cells.slice(1, 5).every((cell) => cell !== ""), line);
    const [, id = "", , , coverage = ""] = cells;
    assert.match(id, /^[A-Z]\d\d$/);
    const namesIn = (pattern: RegExp) => [...coverage.matchAll(pattern)].map(([, name = ""]) => name);
    return { id, coverage, simulated: namesIn(/\*([^*]+)\*/g), tests: namesIn(/`([^`]+)`/g) };
  });

test("every row has an id of its own, a fault, a reaction, and what covers it or that nothing does", () => {
  assert.ok(rows.length > 100, `${rows.length} rows`);
  assert.equal(new Set(rows.map(({ id }) => id)).size, rows.length);
  const part = /^(\*[^*`]+\*|`[^`]+`)( \([^()]+\))?$/;
  const wrong = rows.filter(
    ({ coverage }) => coverage !== uncovered && !coverage.split(", ").every((each) => part.test(each)),
  );
  assert.deepEqual(
    wrong.map(({ id, coverage }) => `${id}: ${coverage}`),
    [],
  );
});

test("every test that a row names exists", () => {
  const known = new Set(projectFiles(/\.test\.ts$/));
  const missing = rows.flatMap(({ id, tests }) =>
    tests.filter((name) => !known.has(name)).map((name) => `${id}: ${name}`),
  );
  assert.deepEqual(missing, []);
});

test("every fault of the simulation is in the rows that it cites, and in no other", () => {
  const actions = new Set(life.map(([, name]) => name));
  const cited = faults.flatMap(({ ids, name }) => ids.map((id) => `${id}: ${name}`));
  const named = rows.flatMap(({ id, simulated }) =>
    simulated.filter((name) => !actions.has(name)).map((name) => `${id}: ${name}`),
  );
  assert.deepEqual(named.sort(), cited.sort());
});

test("the counts are those of the rows", () => {
  const simulated = rows.filter((row) => row.simulated.length > 0);
  const tested = rows.filter((row) => row.tests.length > 0);
  const both = simulated.filter((row) => row.tests.length > 0);
  const real = rows.filter((row) => row.tests.some((name) => /^test\/(cluster|node)\//.test(name)));
  const neither = rows.filter((row) => row.coverage === uncovered);
  assertGoldenSection(
    "docs/faults.md",
    "counts",
    [
      "| covered by | rows |",
      "|---|---|",
      `| the simulation | ${simulated.length} |`,
      `| a test | ${tested.length} |`,
      `| both | ${both.length} |`,
      `| a test on the real API server | ${real.length} |`,
      `| nothing yet | ${neither.length}: ${neither.map(({ id }) => id).join(", ")} |`,
      `| all rows | ${rows.length} |`,
    ].join("\n"),
  );
});
