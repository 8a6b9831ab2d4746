// All kinds side by side, each behind the same face: a mapping in, a document out, and back.
import type { Refuse } from "../model/field-problem.ts";
import type { DocumentContent } from "./document.ts";
import type { Field } from "./fields.ts";
import {
  type DocumentRules,
  deploymentKind,
  environmentKind,
  type Kind,
  policyKind,
  sentinelKind,
} from "./kinds.ts";
import { refuseUnknown } from "./known-names.ts";
import type { JsonValue, SourceMap } from "./source-tree.ts";

export const apiVersion = "krane/v1";

/** What every document may say besides the fields of its kind. */
export const headerNames = ["apiVersion", "kind", "region"] as const;

export interface DocumentKind {
  readonly word: string;
  readonly kind: DocumentContent["kind"];
  readonly holds: string;
  readonly fields: readonly Pick<
    Field<never>,
    "name" | "wireName" | "words" | "fallback" | "isRequired" | "holds"
  >[];
  /** Whatever is refused, the result is of the right shape. */
  read(map: SourceMap, rules: DocumentRules, refuse: Refuse): DocumentContent;
  /** In the order of the table; undefined for a document of another kind. */
  write(document: DocumentContent): { readonly [name: string]: JsonValue } | undefined;
}

export const documentKinds: readonly DocumentKind[] = [
  faceOf(deploymentKind),
  faceOf(sentinelKind),
  faceOf(policyKind),
  faceOf(environmentKind),
];

function faceOf<C, D extends DocumentContent>(kind: Kind<C, D>): DocumentKind {
  const { word, holds, fields } = kind;
  const known = [
    ...headerNames.map((name) => ({ name })),
    ...fields.map(({ name, wireName }) => ({ name, aliases: [wireName] })),
  ];
  return {
    word,
    kind: kind.kind,
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
      for (const problem of kind.judge(content, rules)) {
        for (const field of fields) {
          const translated = field.translate(problem);
          // What is not even of the right type has been said; the model saw a stand-in.
          if (translated !== undefined && !refused.has(field)) refuse(translated.path, translated.message);
        }
      }
      return kind.documentOf(content);
    },
    write(document) {
      if (document.kind !== kind.kind) return undefined;
      const content = kind.contentOf(document as D);
      const members = fields.map((field) => [field.name, field.write(content)] as const);
      return Object.fromEntries(
        members.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
      );
    },
  };
}
