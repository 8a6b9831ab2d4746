// Renders a value as YAML that is safe to print: control characters and characters that change the writing direction are
// escaped, and parsers read them back unchanged.
import { Document, Scalar, visit } from "yaml";
import { everyHiddenCharacter, hiddenCharacters } from "../model/field-problem.ts";

/** One document, with a newline at its end. */
export function yamlText(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      // YAML has escapes only in double-quoted strings.
      if (typeof node.value === "string" && hiddenCharacters.test(node.value))
        node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  return document.toString({ lineWidth: 0 }).replaceAll(everyHiddenCharacter, escaped);
}

function escaped(character: string): string {
  return `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`;
}
