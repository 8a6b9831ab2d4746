// The formats of field values: how each is read from a document as its wire value, and written back.

import { quote, type Refuse } from "../model/field-problem.ts";
import { mebibytes, millicores, wholeMebibytes, wholeMillicores } from "../model/quantities.ts";
import { refuseUnknown } from "./known-names.ts";
import { type JsonValue, jsonOf, type SourceNode, wordOf } from "./source-tree.ts";

export interface Format<T> {
  /** What users write, for the documentation and error messages. */
  readonly words: string;
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
  read(node, path, refuse) {
    const value = node.kind === "scalar" ? node.value : undefined;
    if (typeof value === "number" && Number.isSafeInteger(value)) return value;
    refuse(path, `must be a whole number, but is ${wordOf(node)}`);
    return 0;
  },
  write: (value) => value,
};

export const cpu: Format<bigint> = quantity(
  "cores, such as 250m, 1 or 0.5",
  "millicores",
  wholeMillicores,
  millicores,
);
export const memory: Format<bigint> = quantity(
  "whole MiB, such as 256Mi or 1Gi",
  "MiB",
  wholeMebibytes,
  mebibytes,
);

function quantity(
  words: string,
  unit: string,
  parse: (text: string) => bigint | undefined,
  render: (amount: number) => string,
): Format<bigint> {
  return {
    words,
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
  read(node, path, refuse) {
    if (node.kind === "list")
      return node.items.map((item, index) => text.read(item, `${path}[${index}]`, refuse));
    refuse(path, `must be a list of text, but is ${wordOf(node)}`);
    return [];
  },
  write: (value) => value,
};

export type Bytes = Uint8Array<ArrayBuffer>;

/** A JSON object that is sent as bytes. `names`: the allowed members; absent to allow all. */
export function jsonObject(words: string, names?: readonly string[]): Format<Bytes> {
  return {
    words,
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
