// Reads from Go sources what OpenAPI lacks: which fields of a Kubernetes type are pointers,
// and which are left out of JSON when empty. Only because of this, `hostNetwork: false`
// vanishes from a stored pod and `automountServiceAccountToken: false` stays.

export interface GoField {
  readonly pointer: boolean;
  readonly omitEmpty: boolean;
  readonly omitZero: boolean;
}

interface GoStruct {
  readonly fields: ReadonlyMap<string, GoField>;
  /** Structs whose fields are part of this one in JSON. */
  readonly inlined: readonly string[];
}

export type GoStructs = ReadonlyMap<string, GoStruct>;

/** All structs of one source file, by name. */
export function parseGoStructs(source: string): Map<string, GoStruct> {
  const structs = new Map<string, GoStruct>();
  for (const [, name = "", body = ""] of source.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) {
    const fields = new Map<string, GoField>();
    const inlined: string[] = [];
    for (const line of body.split("\n")) {
      const match = /^\s*(?:\w+\s+)?(\S+)\s+`json:"([^"]*)"/.exec(line);
      if (match === null) continue;
      const [, type = "", tag = ""] = match;
      const [jsonName = "", ...flags] = tag.split(",");
      if (flags.includes("inline") || jsonName === "") {
        inlined.push(type.replace(/^\*/, "").replace(/^.*\./, ""));
      } else {
        fields.set(jsonName, {
          pointer: type.startsWith("*"),
          omitEmpty: flags.includes("omitempty"),
          omitZero: flags.includes("omitzero"),
        });
      }
    }
    structs.set(name, { fields, inlined });
  }
  return structs;
}

export function findGoField(structs: GoStructs, struct: string, field: string): GoField | undefined {
  const found = structs.get(struct);
  if (found === undefined) return undefined;
  const own = found.fields.get(field);
  if (own !== undefined) return own;
  for (const inlined of found.inlined) {
    const inner = findGoField(structs, inlined, field);
    if (inner !== undefined) return inner;
  }
  return undefined;
}
