// Defines a field of a document: its names in documents and on the wire, its format and meaning. Parsing, rendering,
// error messages and the documentation derive from these definitions.
import type { FieldProblem, Refuse } from "../model/field-problem.ts";
import type { Format, Shape } from "./formats.ts";
import type { JsonValue, SourceMap } from "./source-tree.ts";

/** `C`: the values of all fields of a kind. */
export interface Field<C> {
  readonly name: string;
  /** The name in the .proto file. */
  readonly wireName: string;
  readonly words: string;
  readonly shape: Shape;
  /** The default, as written in a document. */
  readonly fallback: JsonValue | undefined;
  readonly isRequired: boolean;
  /** One line for the documentation. */
  readonly holds: string;
  read(map: SourceMap, refuse: Refuse): Partial<C>;
  /** Undefined if there is nothing to write. */
  write(content: C): JsonValue | undefined;
  /** A problem of the model, with the document's field name; undefined if it is about another field. */
  translate(problem: FieldProblem): FieldProblem | undefined;
}

/** `key`: its name in generated code. */
export function field<C, K extends keyof C & string>(
  name: string,
  key: K,
  format: Format<Exclude<C[K], undefined>>,
  holds: string,
  {
    isRequired = false,
    fallback,
  }: { readonly isRequired?: boolean; readonly fallback?: Exclude<C[K], undefined> } = {},
): Field<C> {
  const wireName = key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const partOf = (value: Exclude<C[K], undefined>) => ({ [key]: value }) as Partial<C>;
  return {
    name,
    wireName,
    words: format.words,
    shape: format.shape,
    fallback: fallback === undefined ? undefined : format.write(fallback),
    isRequired,
    holds,
    read(map, refuse) {
      const entry = map.entries.get(name);
      if (entry === undefined) return fallback === undefined ? {} : partOf(fallback);
      if (entry.node.kind === "scalar" && entry.node.value === null) {
        refuse(name, "has no value; set one, or remove the field");
        return {};
      }
      return partOf(format.read(entry.node, name, refuse));
    },
    write(content) {
      const value = content[key];
      if (value === undefined || (fallback === undefined && isUnset(value))) return undefined;
      return format.write(value as Exclude<C[K], undefined>);
    },
    translate({ path, message }) {
      if (!path.startsWith(wireName) || /^\w/.test(path.slice(wireName.length))) return undefined;
      const rest = path.slice(wireName.length);
      const { innerPath = "", unit } = format;
      const inner = rest.startsWith(innerPath) ? rest.slice(innerPath.length) : rest;
      return { path: name + inner, message: unit === undefined ? message : `${message} (in ${unit})` };
    },
  };
}

/** Whether a value is the wire default of a field that was never set. */
function isUnset(value: unknown): boolean {
  return value === "" || value === 0 || (value as { readonly length?: number }).length === 0;
}
