// Describes documents as JSON Schema, built from the fields of their kinds, so that editors complete and check what people write.
// Draft 7, which is the newest that all editors support. It knows shapes, not the rules of the model: what krane accepts is valid
// here, but not the other way round.
import { apiVersion, type DocumentSchema } from "./document-kind.ts";

const regionMeaning =
  "The region that it belongs to, such as us-east-1.aws; by default that of the command, or of the context.";

type SchemaOfKind = Pick<DocumentSchema<never>, "word" | "holds" | "fields">;

/** The schema of one document of any of these kinds. */
export function documentsSchema(kinds: readonly SchemaOfKind[]): object {
  const words = kinds.map(({ word }) => word);
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "krane documents",
    description: "Desired state for krane apply, diff, delete and render.",
    type: "object",
    properties: {
      apiVersion: { const: apiVersion, description: "The version of the format." },
      kind: { enum: words, description: "What the document describes." },
    },
    required: ["apiVersion", "kind"],
    // Not `oneOf`: a mistake in one field would then be reported as "matches no kind".
    allOf: words.map((word) => ({
      if: { properties: { kind: { const: word } }, required: ["kind"] },
      // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema; nothing awaits this object.
      then: { $ref: `#/definitions/${word}` },
    })),
    definitions: Object.fromEntries(kinds.map((kind) => [kind.word, definitionOf(kind)])),
  };
}

function definitionOf({ holds, fields }: SchemaOfKind): object {
  const own = fields.map(({ name, shape, holds: description, fallback }) => {
    return [name, { ...shape, description, ...(fallback !== undefined && { default: fallback }) }] as const;
  });
  return {
    description: holds,
    type: "object",
    properties: {
      apiVersion: {},
      kind: {},
      region: { type: "string", minLength: 1, description: regionMeaning },
      ...Object.fromEntries(own),
    },
    required: fields.flatMap(({ name, isRequired }) => (isRequired ? [name] : [])),
    additionalProperties: false,
  };
}
