// docs/documents.md says what documents may say, checked both ways.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DocumentKind, headerNames } from "../../src/documents/document-kind.ts";
import { documentOf, renderYaml } from "../../src/documents/document-of.ts";
import { fileCharsMax, parseDocuments } from "../../src/documents/parse.ts";
import { levelsMax, lexemesMax, partsMax } from "../../src/documents/yaml-trees.ts";
import { loadDocumentKinds } from "../../src/kinds/documents.ts";
import { ciphertextOf } from "../support/ciphertext.ts";
import { assertGoldenSection } from "../support/golden-section.ts";
import { readProjectFile } from "../support/project-files.ts";

const kinds = await loadDocumentKinds();
const page = readProjectFile("docs/documents.md");
const [, example = ""] = /```yaml\n([\s\S]*?)```/.exec(page) ?? [];

function sectionOf({ word, holds, fields }: DocumentKind): string {
  const rows = fields.map(({ name, words, isRequired, fallback, holds: meaning }) => {
    const presence = isRequired ? "*required*" : fallback === undefined ? "" : `\`${fallback}\``;
    return `| \`${name}\` | ${words} | ${presence} | ${meaning} |`;
  });
  return [`### ${word}`, "", holds, "", "| field | value | default | |", "|---|---|---|---|", ...rows].join(
    "\n",
  );
}

test("the tables have every field of every kind, and no other", () => {
  assertGoldenSection("docs/documents.md", "fields", kinds.map(sectionOf).join("\n\n"));
});

test("the fields that every document has are there too", () => {
  const [, table = ""] = /Every document has these:\n\n([\s\S]*?)\n\n/.exec(page) ?? [];
  const names = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name);
  assert.deepEqual(names, [...headerNames]);
});

test("the example is valid, has every kind, and every field that a person would write by hand", () => {
  const parsed = parseDocuments([{ name: "docs/documents.md", text: example }], kinds);
  assert.ok(parsed.kind === "valid");
  const shown = parsed.documents.map((document) => documentOf(document, kinds));
  assert.deepEqual(
    shown.map((document) => document["kind"]),
    ["Environment", "Deployment", "Sentinel", "Policy", "Route", "App"],
  );
  for (const { word, fields } of kinds) {
    const document = shown.find((each) => each["kind"] === word) ?? {};
    const absent = fields.map(({ name }) => name).filter((name) => !(name in document));
    assert.deepEqual(absent, word === "Deployment" ? ["encryptedSecrets"] : [], word);
  }
});

test("what is said to be required is, and nothing else", () => {
  const secret = `encryptedSecrets: {NAME: ${ciphertextOf("x")}}`;
  const parsed = parseDocuments(
    [{ name: "a", text: example.replace("buildId: b_1", `buildId: b_1\n${secret}`) }],
    kinds,
  );
  assert.ok(parsed.kind === "valid");
  for (const whole of parsed.documents.map((document) => documentOf(document, kinds))) {
    const fields = kinds.find(({ word }) => word === whole["kind"])?.fields ?? [];
    for (const { name, isRequired } of fields) {
      const { [name]: _, ...rest } = whole;
      const outcome = parseDocuments([{ name: "a", text: renderYaml([rest]) }], kinds);
      const paths = outcome.kind === "invalid" ? outcome.problems.map(({ path }) => path) : [];
      assert.deepEqual(paths, isRequired ? [name] : [], `${whole["kind"]} without ${name}`);
    }
  }
});

test("the limits are those of the code", () => {
  for (const limit of [fileCharsMax, lexemesMax, partsMax, levelsMax])
    assert.match(page, new RegExp(`\\b${limit}\\b`));
});

test("the complaints that it shows are those that are made", () => {
  const [, shown = ""] = /while there is one:\n\n```\n([\s\S]*?)```/.exec(page) ?? [];
  const text = `${example.split("---\n")[1]}`
    .replace("replicas: 2", 'replicas: "2"')
    .replace("port: 8080", "prot: 8080");
  const outcome = parseDocuments([{ name: "hello.yaml", text }], kinds);
  assert.ok(outcome.kind === "invalid");
  const lines = outcome.problems.map(
    ({ file, line, path, message }) => `${file}:${line}: ${path} ${message}\n`,
  );
  assert.deepEqual(lines.sort(), shown.split(/(?<=\n)/).sort());
});
