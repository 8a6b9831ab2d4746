// The second net under K7. Secrets are a type of their own that no log line, span or metric takes; what this catches
// is text that somebody else wrote, such as the error of an HTTP client that quotes the request it sent.

const redacted = "[redacted]";

// Text is cut before it is searched, so that a message of many megabytes costs no more than one of this size. It is
// far above every length that is kept, so a token that straddles the cut is not in what is kept either.
const searchedCharsMax = 16_384;

const patterns: readonly (readonly [RegExp, string])[] = [
  // A header as text or as part of a printed object: `authorization: Bearer x`, `\"authorization\":\"x\"`,
  // `Authorization: [ 'x' ]`. Two words, because the scheme before the token can be any.
  [
    /(authorization[\\"']{0,2}\s{0,4}[:=][\s\\"'[]{0,8})[^\s\\"',;\]}]+([ \t]+[^\s\\"',;\]}]+)?/gi,
    `$1${redacted}`,
  ],
  // But not the words "bearer token" in a sentence, such as one that says that a bearer token is needed.
  [/\b(bearer|basic)\s+(?!tokens?[.,;:)]?(?:\s|$))[\w.~+/=-]+/gi, `$1 ${redacted}`],
  // The token of a Kubernetes service account is a JWT, and is recognisable on its own.
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, redacted],
  // The user and password of a URL.
  [/\/\/[^\s/@:]*:[^\s/@]+@/g, `//${redacted}@`],
];

/** The text without tokens and passwords that have a recognisable shape, cut to a length. */
export function scrub(text: string, charsMax: number): string {
  let clean = text.length > searchedCharsMax ? text.slice(0, searchedCharsMax) : text;
  for (const [pattern, replacement] of patterns) clean = clean.replace(pattern, replacement);
  return cut(clean, charsMax, text.length > searchedCharsMax);
}

function cut(text: string, charsMax: number, wasCut: boolean): string {
  if (text.length <= charsMax) return wasCut ? `${text}…` : text;
  return `${text.slice(0, charsMax)}…`;
}
