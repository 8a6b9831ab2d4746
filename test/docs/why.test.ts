// docs/why.md lists every cause, each with an explanation from the golden files.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { causes, type Explanation } from "../../src/why/explanation.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { projectRoot, readProjectFile } from "../support/project-files.ts";

function answerFor(cause: string): Explanation {
  const names = readdirSync(join(projectRoot, "testdata/why")).sort();
  const answers = names.map(
    (name): Explanation => JSON.parse(readProjectFile(`testdata/why/${name}/answer.json`)),
  );
  // The case named like its cause is the simplest one.
  const plain = names.indexOf(cause);
  const answer = plain >= 0 ? answers[plain] : answers.find((each) => each.cause === cause);
  if (answer === undefined) throw new Error(`no golden answer for ${cause}`);
  return answer;
}

test("docs/why.md lists every cause, with an example and what to do", () => {
  const rows = causes.map((cause) => {
    const { summary, remedy } = answerFor(cause);
    return `| \`${cause}\` | ${summary} | ${remedy.replaceAll("|", "\\|")} |`;
  });
  const table = ["| cause | example | what to do |", "|---|---|---|", ...rows].join("\n");
  assertGoldenSection("docs/why.md", "causes", table);
});
