// Finds the line of every key in a TOML document, which the parser does not provide. It only scans text that the parser
// has accepted, so it only has to tell keys from values, strings and comments.
//
// Keys inside lists are not located; a problem there is reported at the list's own key.

import { parse } from "smol-toml";

export type KeyLines = ReadonlyMap<string, number>;

// No setting has more than four parts. The limit keeps a key of ten thousand parts from creating ten thousand entries.
const depthMax = 8;

const blank = /(?:\s|#[^\n]*)*/y;
const keyText = /(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^"'=\]\n])*/y;
const keyParts = /"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+/g;
const stringText = /"""(?:[^\\]|\\[\s\S])*?"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\]|\\.)*"|'[^']*'/y;
const scalarText = /[^,\]}\n#]*/y;

export function keyId(parts: readonly string[]): string {
  return JSON.stringify(parts);
}

export function locateKeys(text: string): KeyLines {
  const scanner = new Scanner(text);
  let section: readonly string[] = [];
  scanner.take(blank);
  while (!scanner.done) {
    const line = scanner.line();
    if (scanner.skip("[")) {
      scanner.skip("[");
      section = scanner.key([], line);
      scanner.skip("]");
      scanner.skip("]");
    } else {
      scanner.keyAndValue(section);
    }
    scanner.take(blank);
  }
  return scanner.lines;
}

class Scanner {
  readonly lines = new Map<string, number>();
  private readonly text: string;
  private offset: number;
  private countedOffset = 0;
  private countedLine = 1;

  constructor(text: string) {
    this.text = text;
    this.offset = text.startsWith("\ufeff") ? 1 : 0;
  }

  get done(): boolean {
    return this.offset >= this.text.length;
  }

  /** The line of the next character. Counts on from the last call, so that a scan stays linear. */
  line(): number {
    for (; this.countedOffset < this.offset; this.countedOffset++) {
      if (this.text[this.countedOffset] === "\n") this.countedLine++;
    }
    return this.countedLine;
  }

  take(pattern: RegExp): string {
    // A copy, because a sticky pattern stores its position.
    const sticky = new RegExp(pattern);
    sticky.lastIndex = this.offset;
    const found = sticky.exec(this.text)?.[0] ?? "";
    this.offset += found.length;
    return found;
  }

  skip(character: string): boolean {
    if (this.text[this.offset] !== character) return false;
    this.offset++;
    return true;
  }

  key(prefix: readonly string[], line: number): readonly string[] {
    const parts = [...prefix];
    for (const [raw] of this.take(keyText).matchAll(keyParts)) {
      if (parts.length === depthMax) break;
      parts.push(decodeKeyPart(raw));
      const id = keyId(parts);
      if (!this.lines.has(id)) this.lines.set(id, line);
    }
    return parts;
  }

  keyAndValue(prefix: readonly string[]): void {
    const before = this.offset;
    const key = this.key(prefix, this.line());
    this.skip("=");
    this.take(blank);
    this.value(key);
    // If nothing was consumed, the text is not valid TOML; stop instead of looping forever.
    if (this.offset === before) this.offset = this.text.length;
  }

  /** Without a key the value is inside a list, and its keys are skipped. */
  value(key: readonly string[] | undefined): void {
    if (this.skip("{")) this.items("}", () => (key === undefined ? this.pair() : this.keyAndValue(key)));
    else if (this.skip("[")) this.items("]", () => this.value(undefined));
    else if (this.take(stringText) === "") this.take(scalarText);
  }

  items(end: string, item: () => void): void {
    this.take(blank);
    while (!this.done && !this.skip(end)) {
      const before = this.offset;
      item();
      this.take(blank);
      this.skip(",");
      this.take(blank);
      if (this.offset === before) this.offset = this.text.length;
    }
  }

  pair(): void {
    this.take(keyText);
    this.skip("=");
    this.take(blank);
    this.value(undefined);
  }
}

function decodeKeyPart(raw: string): string {
  if (raw.startsWith("'")) return raw.slice(1, -1);
  if (!raw.startsWith('"')) return raw;
  // The parser itself decodes the escapes, so that both always agree on the key.
  return String(parse(`key = ${raw}`)["key"]);
}
