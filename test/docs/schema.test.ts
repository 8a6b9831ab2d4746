// schema/krane.schema.json says the same as the code that reads documents, checked both ways with a validator of its own.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Ajv } from "ajv";
import fc from "fast-check";
import { parse, parseAllDocuments } from "yaml";
import { main } from "../../src/cli/main.ts";
import { documentOf, type PlainDocument, renderYaml } from "../../src/documents/document-of.ts";
import { documentsSchema } from "../../src/documents/json-schema.ts";
import { parseDocuments } from "../../src/documents/parse.ts";
import type { JsonValue } from "../../src/documents/source-tree.ts";
import { loadDocumentKinds } from "../../src/kinds/documents.ts";
import { ciphertextOf } from "../support/ciphertext.ts";
import { FakeIo } from "../support/fake-io.ts";
import { projectRoot, readProjectFile } from "../support/project-files.ts";

const kinds = await loadDocumentKinds();
const file = "schema/krane.schema.json";

if (process.env["UPDATE_GOLDEN"] === "1") {
  mkdirSync(join(projectRoot, "schema"), { recursive: true });
  writeFileSync(join(projectRoot, file), `${JSON.stringify(documentsSchema(kinds), undefined, 2)}\n`);
}

const schema = JSON.parse(readProjectFile(file)) as object;
const validate = new Ajv({ strict: true, strictTypes: false, allErrors: true }).compile(schema);

/** All fields of each kind, from docs/documents.md, which another test compares with the code. */
const [, example = ""] = /```yaml\n([\s\S]*?)```/.exec(readProjectFile("docs/documents.md")) ?? [];
const wholes = parseAllDocuments(example).map((each): PlainDocument => {
  const document = each.toJS() as PlainDocument;
  if (document["kind"] !== "Deployment") return document;
  return { ...document, encryptedSecrets: { NAME: ciphertextOf("x") } };
});

function problemPaths(document: unknown): readonly string[] {
  const outcome = parseDocuments([{ name: "a", text: renderYaml([document]) }], kinds);
  return outcome.kind === "valid" ? [] : outcome.problems.map(({ path }) => path);
}

function schemaPaths(document: unknown): readonly string[] {
  validate(document);
  return (validate.errors ?? []).flatMap(({ instancePath, params, keyword }) => {
    const path = instancePath.slice(1).replaceAll("/", ".");
    const { additionalProperty, missingProperty } = params as Record<string, string | undefined>;
    const name = additionalProperty ?? missingProperty;
    if (keyword === "if") return [];
    return [name === undefined ? path : path === "" ? name : `${path}.${name}`];
  });
}

describe("the schema of documents", () => {
  test("is what the code generates, and what krane schema prints", async () => {
    assert.deepEqual(schema, JSON.parse(JSON.stringify(documentsSchema(kinds))));
    const io = new FakeIo();
    assert.equal(await main(["schema"], {}, io), 0);
    assert.deepEqual(JSON.parse(io.stdout.text), schema);
  });

  test("accepts every kind with every field, as people write it and as krane writes it", () => {
    const parsed = parseDocuments([{ name: "a", text: renderYaml(wholes) }], kinds);
    assert.ok(parsed.kind === "valid");
    const written = parsed.documents.map((each) => documentOf(each, kinds));
    for (const document of [...wholes, ...written])
      assert.deepEqual(schemaPaths(document), [], document["id"] as string);
    assert.deepEqual(new Set(wholes.map(({ kind }) => kind)), new Set(kinds.map(({ word }) => word)));
  });

  test("and krane agree on each document with one field removed, renamed or of another type", () => {
    for (const whole of wholes) {
      for (const name of Object.keys(whole)) {
        const { [name]: value, ...rest } = whole;
        // Each type is wrong for some field, and right for others.
        const others: readonly JsonValue[] = ["text", 7, 7.5, true, null, [], [1], {}, { unknown: 1 }];
        const documents: readonly PlainDocument[] = [
          rest,
          { ...rest, [`${name}s`]: value ?? null },
          ...others.map((other) => ({ ...rest, [name]: other })),
        ];
        for (const document of documents) {
          const [krane, editor] = [problemPaths(document), schemaPaths(document)];
          const about = `${whole["kind"]}.${name}: ${JSON.stringify(document)}`;
          // The rules of the model are not in the schema: there only krane complains.
          if (krane.length === 0) assert.deepEqual(editor, [], about);
          if (!(name in document) || isOfWrongType(whole[name], document[name]))
            assert.deepEqual(editor.length > 0, krane.length > 0, about);
        }
      }
    }
  });

  test("accepts every amount and every duration that krane accepts", () => {
    const [app = {}] = wholes.filter(({ kind }) => kind === "App");
    const number = fc.stringMatching(/^[+]?(\d{1,4}(\.\d{0,3})?|\.\d{1,3})$/);
    const unit = fc.constantFrom("", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3", "E2", "n", "x");
    const amount = fc.tuple(number, unit).map((parts) => parts.join(""));
    const part = fc.tuple(number, fc.constantFrom("ms", "s", "m", "h", "us", "µs", "d"));
    const duration = fc.oneof(
      fc.constantFrom("", "0", "-0", "+5s"),
      fc.array(part).map((parts) => parts.flat().join("")),
    );
    fc.assert(
      fc.property(amount, amount, duration, (cpu, memory, readyFor) => {
        const document = { ...app, cpu, memory, release: { readyFor } };
        const [krane, editor] = [problemPaths(document), schemaPaths(document)];
        for (const path of editor) assert.ok(krane.includes(path), `${path} of ${JSON.stringify(document)}`);
      }),
    );
  });

  test("is named by the examples, and accepts them", () => {
    const text = readProjectFile("examples/hello.yaml");
    const [, named = ""] = /^# yaml-language-server: \$schema=(\S+)$/m.exec(text) ?? [];
    assert.equal(new URL(named, "file:///examples/hello.yaml").pathname, `/${file}`);
    for (const document of parseAllDocuments(text)) assert.deepEqual(schemaPaths(document.toJS()), []);
    const { files } = parse(readProjectFile("package.json")) as { readonly files: readonly string[] };
    assert.ok(files.includes("schema"), "the package has it");
  });
});

describe("krane explain", () => {
  async function explain(...args: readonly string[]) {
    const io = new FakeIo();
    const code = await main(["explain", ...args], {}, io);
    return { code, out: io.stdout.text, err: io.stderr.text };
  }

  test("knows every kind, every field and every member of the schema, with its whole meaning", async () => {
    const all = await explain();
    for (const { word, kind, holds, fields } of kinds) {
      assert.match(all.out, new RegExp(`^${word} `, "m"));
      const whole = await explain(kind);
      assert.ok(whole.out.startsWith(`${word}: ${holds}\n`));
      for (const { name, holds: meaning, shape } of fields) {
        assert.match(whole.out, new RegExp(`^${name} `, "m"));
        const one = await explain(`${kind}.${name}`);
        assert.ok(one.out.includes(meaning), `${kind}.${name}`);
        for (const [member, { description = "?" }] of Object.entries(shape.properties ?? {}))
          assert.ok((await explain(`${kind}.${name}.${member}`)).out.includes(description), member);
      }
    }
  });

  test("also takes plurals, and the spec that Kubernetes would have", async () => {
    const { out } = await explain("app.release");
    assert.equal((await explain("apps.spec.release")).out, out);
    assert.match(out, /^deadline +10m +How long/m);
  });

  test("prints what docs/documents.md shows", async () => {
    const [, path = "", shown] =
      /```\n\$ krane explain (\S+)\n([\s\S]*?)```/.exec(readProjectFile("docs/documents.md")) ?? [];
    assert.equal((await explain(path)).out, shown);
  });

  test("suggests a field for an unknown one", async () => {
    const { code, err } = await explain("app.relese");
    assert.deepEqual([code, err], [64, 'krane: unknown field "relese"; did you mean release?\n']);
    assert.match((await explain("app.image.tag")).err, /unknown field "tag"; App\.image has none/);
    assert.match((await explain("app.release.constructor")).err, /unknown field/);
  });
});

function isOfWrongType(right: unknown, other: unknown): boolean {
  const typeOf = (value: unknown) =>
    Array.isArray(value) ? "array" : value === null ? "null" : typeof value;
  return typeOf(right) !== typeOf(other);
}
