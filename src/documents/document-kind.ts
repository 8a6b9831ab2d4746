// A kind of document: its fields, and the conversion between a mapping and a document. Callers pass in the kinds.
import type { FieldProblem, ParsedMessage, Refuse } from "../model/field-problem.ts";
import type { MessageRules } from "../model/message-fields.ts";
import type { DocumentContent } from "./document.ts";
import type { Field } from "./fields.ts";
import { refuseUnknown } from "./known-names.ts";
import type { JsonValue, SourceMap } from "./source-tree.ts";

export const apiVersion = "krane/v1";

/** The fields of every document, besides those of its kind. */
export const headerNames = ["apiVersion", "kind", "region"] as const;

/** What the agent of a region accepts, as far as known. */
export type DocumentRules = MessageRules;

/** `C`: the values of all fields; `D`: the document built from them. */
export interface DocumentDefinition<C, D extends DocumentContent> {
  /** The value of `kind` in documents. */
  readonly word: string;
  readonly kind: D["kind"];
  /** One or two sentences for the documentation. */
  readonly holds: string;
  readonly fields: readonly Field<C>[];
  /** The problems of the content, by wire name. */
  judge(content: Partial<C>, rules: DocumentRules): readonly FieldProblem[];
  documentOf(content: Partial<C>): D;
  contentOf(document: D): C;
}

/** The definition without `C`, so that all kinds fit in one list. */
export interface DocumentSchema<D extends DocumentContent> {
  readonly word: string;
  readonly kind: D["kind"];
  readonly holds: string;
  readonly fields: readonly Pick<
    Field<never>,
    "name" | "wireName" | "words" | "shape" | "fallback" | "isRequired" | "holds" | "translate"
  >[];
  /** The result has the right shape even if values were rejected. */
  read(map: SourceMap, rules: DocumentRules, refuse: Refuse): D;
  /** In the order of `fields`. */
  write(document: D): { readonly [name: string]: JsonValue };
}

export interface DocumentKind<D extends DocumentContent = DocumentContent> extends DocumentSchema<D> {
  idOf(document: D): string;
  /** The parts of the name, which is unique among the documents of the kind within a region. */
  nameOf?(document: D): readonly string[];
  /** The environment that it describes. */
  environmentOf?(document: D): EnvironmentSpec;
  /** The environment that it belongs to, with the owner that the two must share. */
  belongsTo?(document: D): EnvironmentSpec;
}

export interface EnvironmentSpec {
  readonly id: string;
  readonly workspaceId: string;
  readonly projectId: string;
}

export function defineDocument<C, D extends DocumentContent>(
  definition: DocumentDefinition<C, D>,
): DocumentSchema<D> {
  const { word, kind, holds, fields } = definition;
  const known = [
    ...headerNames.map((name) => ({ name })),
    ...fields.map(({ name, wireName }) => ({ name, aliases: [wireName] })),
  ];
  return {
    word,
    kind,
    holds,
    fields,
    read(map, rules, refuse) {
      refuseUnknown(map, "", known, refuse);
      const refused = new Set<Field<C>>();
      const parts = fields.map((field) =>
        field.read(map, (path, message) => {
          refused.add(field);
          refuse(path, message);
        }),
      );
      const content: Partial<C> = Object.assign({}, ...parts);
      for (const problem of definition.judge(content, rules)) {
        for (const field of fields) {
          const translated = field.translate(problem);
          // A wrong type was already reported; the model saw a placeholder.
          if (translated !== undefined && !refused.has(field)) refuse(translated.path, translated.message);
        }
      }
      return definition.documentOf(content);
    },
    write(document) {
      const content = definition.contentOf(document);
      const members = fields.map((field) => [field.name, field.write(content)] as const);
      return Object.fromEntries(
        members.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      );
    },
  };
}

export function problemsOf(parsed: ParsedMessage<unknown>): readonly FieldProblem[] {
  return parsed.kind === "valid" ? [] : parsed.problems;
}
