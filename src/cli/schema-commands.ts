// krane schema and krane explain: what documents may contain, for editors and for people. Both need no control plane.
import type { Command } from "commander";
import { nearestName } from "../config/nearest-key.ts";
import type { Shape } from "../documents/formats.ts";
import type { AnyDocumentKind } from "../kinds/documents.ts";
import { printable } from "../telemetry/scrub.ts";
import { CommandError } from "./command-error.ts";
import type { Io } from "./io.ts";
import { renderTable } from "./terminal/table.ts";

const schemaExamples = `
Examples:
  krane schema > krane.schema.json

To have an editor with a YAML language server check documents, begin them with:
  # yaml-language-server: $schema=krane.schema.json
`;

const explainExamples = `
Examples:
  krane explain                        the kinds of documents
  krane explain app                    the fields of an app
  krane explain app.release            one field, and its members
  krane explain app.release.drainFor
`;

export function addSchemaCommands(program: Command, { io }: { readonly io: Io }): void {
  program
    .command("schema")
    .description("print the JSON Schema of documents, for editors")
    .addHelpText("after", schemaExamples)
    .action(async () => {
      const { documentsSchema } = await import("../documents/json-schema.ts");
      const { loadDocumentKinds } = await import("../kinds/documents.ts");
      io.stdout.write(`${JSON.stringify(documentsSchema(await loadDocumentKinds()), undefined, 2)}\n`);
    });
  program
    .command("explain")
    .argument("[path]", "a kind, or a field of it such as app.release")
    .description("explain a kind of document or a field")
    .addHelpText("after", explainExamples)
    .action(async (path?: string) => {
      const { loadDocumentKinds } = await import("../kinds/documents.ts");
      io.stdout.write(await explanationOf(path, await loadDocumentKinds()));
    });
}

const plain = (text: string) => text;

async function explanationOf(path: string | undefined, kinds: readonly AnyDocumentKind[]): Promise<string> {
  if (path === undefined)
    return renderTable(
      ["KIND", ""],
      kinds.map(({ word, holds }) => [word, firstSentence(holds)]),
      plain,
    );
  const [first = "", ...rest] = path.split(".");
  const { parseKind } = await import("./objects/object-names.ts");
  const name = parseKind(first);
  const kind = kinds.find((each) => each.kind === name);
  if (kind === undefined) throw new CommandError("usage", `no documents describe a ${name}`);
  // Documents have no `spec`, but people who come from Kubernetes write it.
  const steps = rest[0] === "spec" ? rest.slice(1) : rest;
  const [field, ...members] = steps;
  return field === undefined ? explainKind(kind) : explainField(kind, field, members);
}

function explainKind({ word, holds, fields }: AnyDocumentKind): string {
  const rows = fields.map(({ name, words, isRequired, fallback, holds: meaning }) => [
    name,
    words,
    isRequired ? "required" : textOf(fallback),
    firstSentence(meaning),
  ]);
  return `${word}: ${holds}\n\n${renderTable(["FIELD", "VALUE", "DEFAULT", ""], rows, plain)}`;
}

function explainField({ word, fields }: AnyDocumentKind, name: string, members: readonly string[]): string {
  const field = fields.find((each) => each.name === name);
  if (field === undefined)
    return refuseField(
      word,
      name,
      fields.map((each) => each.name),
    );
  let path = `${word}.${name}`;
  let shape: Shape = { ...field.shape, description: field.holds };
  let words = `${field.words}${field.isRequired ? ", required" : defaultOf(field.fallback)}`;
  for (const member of members) {
    const known: Readonly<Record<string, Shape>> = shape.properties ?? {};
    const found = Object.hasOwn(known, member) ? known[member] : undefined;
    if (found === undefined) return refuseField(path, member, Object.keys(known));
    path += `.${member}`;
    shape = found;
    words = `${found.enum?.join(" or ") ?? typeOf(found)}${defaultOf(found.default)}`;
  }
  const below = Object.entries(shape.properties ?? {}).map(
    ([member, { description = "", default: fallback }]) => [member, textOf(fallback), description],
  );
  const table = below.length === 0 ? "" : `\n${renderTable(["MEMBER", "DEFAULT", ""], below, plain)}`;
  return `${path}: ${words}\n\n${shape.description ?? ""}\n${table}`;
}

function refuseField(path: string, name: string, known: readonly string[]): never {
  const near = nearestName(
    name,
    known.map((each) => ({ name: each })),
  );
  const all = known.length === 0 ? `${path} has none` : `${path} has ${known.join(", ")}`;
  const hint = near === undefined ? all : `did you mean ${near}?`;
  throw new CommandError("usage", `unknown field "${printable(name)}"; ${hint}`);
}

function typeOf({ type }: Shape): string {
  return type === "integer" ? "a whole number" : type === "object" ? "a mapping" : "text";
}

function defaultOf(fallback: unknown): string {
  return fallback === undefined ? "" : `, default ${textOf(fallback)}`;
}

function textOf(value: unknown): string {
  return value === undefined ? "" : String(value);
}

/** A table has one line per row. */
function firstSentence(text: string): string {
  return /^.*?[.:;](?= |$)/.exec(text)?.[0].replace(/[:;]$/, ".") ?? text;
}
