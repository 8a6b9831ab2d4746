// Prints results for programs: protocol messages as JSON or YAML, complete and in field order. Zero values are included,
// so that a script does not have to handle missing fields.
import { type DescMessage, type JsonValue, type MessageShape, toJson } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError, Option } from "commander";
import { everyHiddenCharacter } from "../../model/field-problem.ts";

const formats = ["table", "wide", "json", "yaml"] as const;
/** Of `krane get`: what commands accept as a name, what `krane apply` accepts as a document, and the value of a field. */
export const objectFormats = ["name", "document", "path"] as const;

/** Tables are for people and may change; the other formats are for programs and do not. */
export type OutputFormat = (typeof formats)[number] | (typeof objectFormats)[number];

export function addOutputOption(command: Command, more: readonly OutputFormat[] = []): Command {
  const choices = [...formats, ...more];
  const shown = choices.map((choice) => (choice === "path" ? "path=PATH" : choice));
  const option = new Option("-o, --output <format>", "output format").choices(shown).default("table");
  if (!more.includes("path")) return command.addOption(option);
  return command.addOption(
    option.argParser((text) => {
      const [choice, path] = text.split(/=(.*)/s, 2);
      // Only a path has a value.
      if (choices.some((each) => each === choice) && (choice === "path") === (path !== undefined))
        return text;
      throw new InvalidArgumentError(`Allowed choices are ${shown.join(", ")}.`);
    }),
  );
}

export function outputOf(command: Command): { readonly output: OutputFormat; readonly path: string } {
  const [output, path = ""] = (command.opts<{ output?: string }>().output ?? "table").split(/=(.*)/s, 2);
  return { output: output as OutputFormat, path };
}

export function isForPrograms(format: OutputFormat): format is "json" | "yaml" {
  return format === "json" || format === "yaml";
}

export function jsonOf<D extends DescMessage>(schema: D, message: MessageShape<D>): JsonValue {
  return toJson(schema, message, { alwaysEmitImplicit: true });
}

/** The whole result, as text that ends with a newline. */
export async function renderValue(value: JsonValue, format: "json" | "yaml"): Promise<string> {
  if (format === "json") return `${jsonText(value, 2)}\n`;
  const { yamlText } = await import("../../documents/yaml-text.ts");
  return yamlText(value);
}

/** JSON with invisible characters escaped. */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replaceAll(everyHiddenCharacter, (character) =>
    Array.from({ length: character.length }, (_, index) => escapedUnit(character.charCodeAt(index))).join(""),
  );
}

function escapedUnit(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}
