// Implements the part of JSONPath that printer columns and scale subresources use: fields, indexes, wildcards and
// comparisons with a string. Returns the first match.
import { fieldOf, isObject, type Json } from "../json.ts";

const step = /\.([\w-]+|\*)|\['([^']+)'\]|\[(\d+|\*)\]|\[\?\(@\.([\w.-]+)\s*==\s*["']([^"']*)["']\)\]|\\\./gy;

export function readJsonPath(root: unknown, path: string): Json | undefined {
  let values: (Json | undefined)[] = [root as Json];
  step.lastIndex = 0;
  const text = path.replaceAll("\\.", "\u0000");
  for (let match = step.exec(text); match !== null; match = step.exec(text)) {
    const [, field, quoted, index, filterField, filterValue] = match;
    const name = (field ?? quoted)?.replaceAll("\u0000", ".");
    if (name !== undefined && name !== "*")
      values = values.map((value) => (isObject(value) ? fieldOf(value, name) : undefined));
    else if (filterField !== undefined) {
      values = values
        .flatMap(itemsOf)
        .filter((item) => readJsonPath(item, `.${filterField}`) === filterValue);
    } else if (index === "*" || name === "*") values = values.flatMap(itemsOf);
    else values = values.map((value) => (Array.isArray(value) ? value[Number(index)] : undefined));
  }
  return values.find((value) => value !== undefined);
}

function itemsOf(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value) : [];
}
