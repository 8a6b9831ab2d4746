// Makes text from outside safe to print: names, reasons and messages come from servers and manifests. Characters that
// move the cursor, change the text direction or start a new line could falsify the output.

/** The text on one line, without control and formatting characters. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim();
}

/** The same for text of several lines; newlines stay. */
export function printableLines(text: string): string {
  return text.replaceAll(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}
