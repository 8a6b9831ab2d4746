// Text that others wrote, made safe to show: names, reasons and messages come from servers and from whoever
// wrote a manifest. Characters that move the cursor of a terminal, turn the direction of writing or begin a
// new line could make a result say something else than it does.

/** The text on one line, without control and formatting characters. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim();
}

/** The same for text of several lines, which stay where they are. */
export function printableLines(text: string): string {
  return text.replaceAll(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
}
