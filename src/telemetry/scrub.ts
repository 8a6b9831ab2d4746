// Removes tokens and passwords from text: the second line of defence for K7. krane's own secrets have a type that no log
// line, span or metric accepts; this is for text from outside, such as an HTTP client's error that quotes its request.

const redacted = "[redacted]";

// Text is cut before it is searched, so that a message of many megabytes costs no more than one of this size. The limit is
// far above every length that is kept, so a token at the cut is not kept either.
const searchedCharsMax = 16_384;

const patterns: readonly (readonly [RegExp, string])[] = [
  // A header as text or as part of a printed object: `authorization: Bearer x`, `\"authorization\":\"x\"`,
  // `Authorization: [ 'x' ]`. Two words, because the scheme before the token can be any.
  [
    /(authorization[\\"']{0,2}\s{0,4}[:=][\s\\"'[]{0,8})[^\s\\"',;\]}]+([ \t]+[^\s\\"',;\]}]+)?/gi,
    `$1${redacted}`,
  ],
  // But not the words "bearer token" in a sentence.
  [/\b(bearer|basic)\s+(?!tokens?[.,;:)]?(?:\s|$))[\w.~+/=-]+/gi, `$1 ${redacted}`],
  // A Kubernetes service account token is a JWT, which is recognizable without a header.
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, redacted],
  // The user and password of a URL.
  [/\/\/[^\s/@:]*:[^\s/@]+@/g, `//${redacted}@`],
];

/** What every text has that one of the patterns matches. Most log fields have none of it. */
const signs = /authorization|bearer|basic|eyJ|\/\//i;

/** The text without tokens and passwords that have a recognizable form, cut to a length. */
export function scrub(text: string, charsMax: number): string {
  let clean = text.length > searchedCharsMax ? text.slice(0, searchedCharsMax) : text;
  if (signs.test(clean))
    for (const [pattern, replacement] of patterns) clean = clean.replace(pattern, replacement);
  return cut(clean, charsMax, text.length > searchedCharsMax);
}

function cut(text: string, charsMax: number, wasCut: boolean): string {
  if (text.length <= charsMax) return wasCut ? `${text}…` : text;
  return `${text.slice(0, charsMax)}…`;
}

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
