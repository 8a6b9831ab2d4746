// The Fetch standard's Headers, for the packages in the program that only need a list of fields. Node's own come with all of fetch: 16 MB
// in a process on Node 24 that never fetches. An iterator shows the fields at the time when it was made.

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const invalidInValue = /[\0\r\n\u0100-\uffff]/;
const surroundingSpace = /^[\t\n\r ]+|[\t\n\r ]+$/g;
// May occur several times, and cannot be joined with commas.
const setCookie = "set-cookie";

function nameOf(name: unknown): string {
  const text = `${name}`;
  if (!token.test(text)) throw new TypeError(`${JSON.stringify(text)} is not a header name`);
  return text.toLowerCase();
}

/** The value is in no message: it may be a secret. */
function textOf(name: string, value: unknown): string {
  const text = `${value}`.replace(surroundingSpace, "");
  if (invalidInValue.test(text)) throw new TypeError(`invalid value for the header ${name}`);
  return text;
}

type Fields = Iterable<Iterable<unknown>> | Readonly<Record<string, unknown>>;

export class Headers {
  /** By name in lower case. */
  private readonly fields = new Map<string, string>();
  private readonly cookies: string[] = [];

  constructor(init?: Fields) {
    if (init === undefined) return;
    if (init === null || (typeof init !== "object" && typeof init !== "function"))
      throw new TypeError("headers are made of an object or of pairs");
    const pairs = Symbol.iterator in init ? (init as Iterable<Iterable<unknown>>) : Object.entries(init);
    for (const pair of pairs) {
      const both = [...pair];
      if (both.length !== 2) throw new TypeError("each header is a name and a value");
      this.append(both[0], both[1]);
    }
  }

  append(name: unknown, value: unknown): void {
    const key = nameOf(name);
    const text = textOf(key, value);
    if (key === setCookie) this.cookies.push(text);
    else {
      const present = this.fields.get(key);
      this.fields.set(key, present === undefined ? text : `${present}, ${text}`);
    }
  }

  set(name: unknown, value: unknown): void {
    const key = nameOf(name);
    const text = textOf(key, value);
    if (key === setCookie) this.cookies.splice(0, Number.POSITIVE_INFINITY, text);
    else this.fields.set(key, text);
  }

  delete(name: unknown): void {
    const key = nameOf(name);
    if (key === setCookie) this.cookies.length = 0;
    else this.fields.delete(key);
  }

  get(name: unknown): string | null {
    const key = nameOf(name);
    if (key !== setCookie) return this.fields.get(key) ?? null;
    return this.cookies.length > 0 ? this.cookies.join(", ") : null;
  }

  has(name: unknown): boolean {
    const key = nameOf(name);
    return key === setCookie ? this.cookies.length > 0 : this.fields.has(key);
  }

  getSetCookie(): string[] {
    return [...this.cookies];
  }

  forEach(callback: (value: string, name: string, all: this) => void, self?: unknown): void {
    for (const [name, value] of this.sorted()) callback.call(self, value, name, this);
  }

  entries(): IterableIterator<[string, string]> {
    return this.sorted().values();
  }

  keys(): IterableIterator<string> {
    return this.sorted()
      .map(([name]) => name)
      .values();
  }

  values(): IterableIterator<string> {
    return this.sorted()
      .map(([, value]) => value)
      .values();
  }

  [Symbol.iterator](): IterableIterator<[string, string]> {
    return this.entries();
  }

  get [Symbol.toStringTag](): string {
    return "Headers";
  }

  private sorted(): [string, string][] {
    const cookies = this.cookies.map((value): [string, string] => [setCookie, value]);
    return [...this.fields, ...cookies].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  }
}
