// The paths of `krane get -o path=...`: fields with dots between them, a position of a list in brackets, and [*] for
// all of its items.
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { printable } from "../../telemetry/scrub.ts";
import { CommandError } from "../command-error.ts";
import { jsonText } from "../terminal/output.ts";

type Step =
  | { readonly kind: "field"; readonly name: string }
  /** Undefined for all items. */
  | { readonly kind: "item"; readonly index: number | undefined };

/** One line for each value; an empty one where the field is not set. Throws if none of the values has the field. */
export function renderPath(path: string, values: readonly JsonValue[]): string {
  const steps = parsePath(path);
  const lines = values.map((value) => valuesAt(steps, value));
  if (values.length > 0 && lines.every((found) => found.length === 0)) throw noField(path, steps, values);
  return lines
    .flatMap((found) => (found.length === 0 ? [""] : found.map(textOf)))
    .map((line) => `${line}\n`)
    .join("");
}

function parsePath(path: string): readonly Step[] {
  const parts = path.replace(/^\./, "").matchAll(/(?:^|\.)([A-Za-z]\w*)|\[(\d{1,9}|\*)\]|(.)/gs);
  const steps = [...parts].map(([, name, index, other]): Step => {
    if (other !== undefined)
      throw new CommandError(
        "usage",
        `path "${printable(path)}" is not fields with dots between them, such as ref.id or deployment.instances[*].address`,
      );
    if (name !== undefined) return { kind: "field", name };
    return { kind: "item", index: index === "*" ? undefined : Number(index) };
  });
  if (steps.length === 0) throw new CommandError("usage", "the path is empty; name a field, such as phase");
  return steps;
}

function valuesAt(steps: readonly Step[], value: JsonValue): readonly JsonValue[] {
  return steps.reduce<readonly JsonValue[]>(
    (values, step) => values.flatMap((each) => stepInto(each, step)),
    [value],
  );
}

function stepInto(value: JsonValue, step: Step): readonly JsonValue[] {
  if (step.kind === "field") {
    const found = isObject(value) && Object.hasOwn(value, step.name) ? value[step.name] : undefined;
    return found === undefined ? [] : [found];
  }
  if (!Array.isArray(value)) return [];
  return step.index === undefined ? value : value.slice(step.index, step.index + 1);
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Text as it is, and all else as JSON. */
function textOf(value: JsonValue): string {
  return typeof value === "string" ? printable(value) : jsonText(value);
}

function noField(path: string, steps: readonly Step[], values: readonly JsonValue[]): CommandError {
  const depth = steps.findIndex((_, index) =>
    values.every((value) => valuesAt(steps.slice(0, index + 1), value).length === 0),
  );
  const reached = values.flatMap((value) => valuesAt(steps.slice(0, Math.max(depth, 0)), value));
  const names = [...new Set(reached.filter(isObject).flatMap((value) => Object.keys(value)))];
  const there = names.length === 0 ? "" : `; there are ${names.map(printable).join(", ")}`;
  return new CommandError("usage", `nothing has the field "${printable(path)}"${there}`);
}
