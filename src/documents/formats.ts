// The formats of field values: how each is read from a document as its wire value, and written back.

import { quote, type Refuse } from "../model/field-problem.ts";
import { mebibytes, millicores, wholeMebibytes, wholeMillicores } from "../model/quantities.ts";
import { refuseUnknown } from "./known-names.ts";
import { type JsonValue, jsonOf, type SourceNode, wordOf } from "./source-tree.ts";

/** The part of JSON Schema that fields use. */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly multipleOf?: number;
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: boolean | Shape;
  readonly description?: string;
  readonly default?: JsonValue;
}

export interface Format<T> {
  /** What users write, for the documentation and error messages. */
  readonly words: string;
  /** The same as JSON Schema: what editors check. It may allow more than `read`, never less. */
  readonly shape: Shape;
  /** The model's unit, if the document uses another. */
  readonly unit?: string;
  /** The part of the wire path that is not in the document's path. */
  readonly innerPath?: string;
  /** After a rejection, any value of the type. */
  read(node: SourceNode, path: string, refuse: Refuse): T;
  /** Undefined if there is nothing to write. */
  write(value: T): JsonValue | undefined;
}

export const text: Format<string> = {
  words: "text",
  shape: { type: "string" },
  read(node, path, refuse) {
    if (node.kind === "scalar" && typeof node.value === "string") return node.value;
    const remedy = node.kind === "scalar" ? "; put it into quotes" : "";
    refuse(path, `must be text, but is ${wordOf(node)}${remedy}`);
    return "";
  },
  write: (value) => value,
};

// The model checks the range of each field, which is much smaller than that of the wire type.
export const count: Format<number> = {
  words: "a whole number",
  shape: { type: "integer" },
  read(node, path, refuse) {
    const value = node.kind === "scalar" ? node.value : undefined;
    if (typeof value === "number" && Number.isSafeInteger(value)) return value;
    refuse(path, `must be a whole number, but is ${wordOf(node)}`);
    return 0;
  },
  write: (value) => value,
};

// What `parseQuantity` reads. An amount without a unit may also be a number: of cores, or of bytes.
const quantityShape: Shape = {
  type: ["string", "number"],
  pattern: String.raw`^\+?(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d{1,2})?$`,
};

export const cpu: Format<bigint> = quantity(
  "cores, such as 250m, 1 or 0.5",
  "millicores",
  wholeMillicores,
  millicores,
  quantityShape,
);
export const memory: Format<bigint> = quantity(
  "whole MiB, such as 256Mi or 1Gi",
  "MiB",
  wholeMebibytes,
  mebibytes,
  { ...quantityShape, multipleOf: 2 ** 20 },
);

function quantity(
  words: string,
  unit: string,
  parse: (text: string) => bigint | undefined,
  render: (amount: number) => string,
  shape: Shape,
): Format<bigint> {
  return {
    words,
    shape,
    unit,
    read(node, path, refuse) {
      const isWritten = node.kind === "scalar" && ["string", "number"].includes(typeof node.value);
      const amount = isWritten ? parse(node.text) : undefined;
      if (amount !== undefined) return amount;
      refuse(path, `must be ${words}, but is ${isWritten ? quote(node.text) : wordOf(node)}`);
      return 1n;
    },
    write: (value) => render(Number(value)),
  };
}

export const texts: Format<string[]> = {
  words: "a list of text",
  shape: { type: "array", items: { type: "string" } },
  read(node, path, refuse) {
    if (node.kind === "list")
      return node.items.map((item, index) => text.read(item, `${path}[${index}]`, refuse));
    refuse(path, `must be a list of text, but is ${wordOf(node)}`);
    return [];
  },
  write: (value) => value,
};

export const textsByName: Format<{ [name: string]: string }> = {
  words: "a mapping from names to text",
  shape: { type: "object", additionalProperties: { type: "string" } },
  read(node, path, refuse) {
    if (node.kind !== "map") {
      refuse(path, `must be ${textsByName.words}, but is ${wordOf(node)}`);
      return {};
    }
    const entries = [...node.entries].map(([name, entry]) => {
      // A message would drop it silently.
      if (name === "__proto__") refuse(`${path}[${quote(name)}]`, "cannot be used as a name");
      return [name, text.read(entry.node, `${path}[${quote(name)}]`, refuse)] as const;
    });
    return Object.fromEntries(entries);
  },
  write: (value) => (Object.keys(value).length === 0 ? undefined : value),
};

export type Bytes = Uint8Array<ArrayBuffer>;

/** Text of which the model accepts only these values. */
export function oneOf(choices: readonly string[]): Format<string> {
  return { ...text, shape: { enum: choices } };
}

/** A JSON object that is sent as bytes. `members`: those that are allowed; absent to allow all. */
export function jsonObject(words: string, members?: Readonly<Record<string, Shape>>): Format<Bytes> {
  const names = members && Object.keys(members);
  return {
    words,
    shape:
      members === undefined
        ? { type: "object" }
        : { type: "object", properties: members, additionalProperties: false },
    read(node, path, refuse) {
      if (node.kind !== "map") refuse(path, `must be a mapping, but is ${wordOf(node)}`);
      else if (names !== undefined)
        refuseUnknown(
          node,
          path,
          names.map((name) => ({ name })),
          refuse,
        );
      return utf8(JSON.stringify(jsonOf(node)));
    },
    write(value) {
      const json = parseObject(value);
      if (names === undefined || json === undefined) return json;
      return Object.fromEntries(names.flatMap((name) => (json[name] == null ? [] : [[name, json[name]]])));
    },
  };
}

/** Undefined for values that the model treats as unset, such as null; other programs may write these. */
function parseObject(bytes: Uint8Array): { readonly [name: string]: JsonValue } | undefined {
  try {
    const json: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof json !== "object" || json === null || Array.isArray(json)) return undefined;
    return json as { readonly [name: string]: JsonValue };
  } catch {
    return undefined;
  }
}

export function utf8(value: string): Bytes {
  return new TextEncoder().encode(value);
}
