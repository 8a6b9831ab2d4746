// docs/metrics.md against the catalogue of spans. That the catalogue holds what is really sent, and nothing else, is
// seen where a whole agent runs: test/integration/canary.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type SpanDefinition, spanCatalogue } from "../../src/telemetry/span-catalogue.ts";
import { assertGoldenSection } from "../support/golden-section.ts";

const spans: readonly SpanDefinition[] = Object.values(spanCatalogue);

test("the table of spans is that of the catalogue", () => {
  const rows = spans.map(({ name, subject, kind, meaning, attributes }) => {
    const cells = Object.entries(attributes).map(([attribute, holds]) => `\`${attribute}\`: ${holds}`);
    return `| \`${name} <${subject.replaceAll(" ", "> <")}>\` | ${kind} | ${meaning} | ${cells.join("; ")} |`;
  });
  const head = ["| Name | Kind | Meaning | Attributes |", "| --- | --- | --- | --- |"];
  assertGoldenSection("docs/metrics.md", "spans", [...head, ...rows].join("\n"));
});

test("no name of a span begins another, so that each tells what it is", () => {
  const names = spans.map(({ name }) => name);
  for (const name of names)
    assert.deepEqual(
      names.filter((other) => `${other} `.startsWith(`${name} `)),
      [name],
    );
});
