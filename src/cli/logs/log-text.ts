// Makes lines of a tenant's log safe for a terminal: what a program prints could move the cursor, rename the window or hide
// text. Colours stay, and end with the line. Files and pipes get every line as it is.

const escapeCode = String.fromCharCode(0x1b);
const colour = new RegExp(`${escapeCode}\\[[0-9;]{0,40}m`);
// Of control and formatting characters, only tabs and colours are kept.
const unsafe = new RegExp(`(${colour.source})|(?!\\t)[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]`, "gu");

export function safeLine(text: string): string {
  const safe = text.replaceAll(unsafe, (_, kept: string | undefined) => kept ?? "\ufffd");
  return colour.test(safe) ? `${safe}${escapeCode}[0m` : safe;
}
