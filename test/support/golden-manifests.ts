// What krane asks of Kubernetes, case by case, as files that a person can read and compare. Each case is a
// folder in testdata: input.json is a message with krane's settings, manifests.json what it becomes, in the
// order of applying. UPDATE_GOLDEN=1 writes the latter; read the difference.
//
// The same manifests are sent to a real API server in test/cluster.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

/** Defines the tests of one folder of testdata; `casesMin` keeps an empty folder from passing. */
export function testGoldenManifests<Input>(
  folderName: string,
  casesMin: number,
  manifestsOf: (input: Input) => readonly unknown[],
): void {
  const folder = fileURLToPath(new URL(`../../testdata/${folderName}/`, import.meta.url));
  const cases = readdirSync(folder).sort();

  test("there are golden manifests", () => {
    assert.ok(cases.length >= casesMin, `${cases.length} cases`);
  });

  for (const name of cases) {
    test(`the manifests of ${name} are those in testdata`, () => {
      const input: Input = JSON.parse(readFileSync(`${folder}${name}/input.json`, "utf8"));
      const file = `${folder}${name}/manifests.json`;
      const text = `${JSON.stringify(manifestsOf(input), undefined, 2)}\n`;
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, text);
      assert.ok(existsSync(file), "no manifests.json; UPDATE_GOLDEN=1 writes it");
      assert.equal(text, readFileSync(file, "utf8"));
    });
  }
}
