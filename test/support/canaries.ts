// Values that must reach one place and no other. Each has a core that occurs nowhere else, and is looked for
// as it is and in the forms that programs give to text: Base64 of it at any offset, in both alphabets, and
// hexadecimal. Escapes of JSON, URLs and logs leave the core as it is.
import { randomBytes } from "node:crypto";

export interface Canary {
  readonly name: string;
  readonly value: string;
}

interface Planted extends Canary {
  readonly forms: readonly string[];
}

export class Canaries {
  private readonly planted: Planted[] = [];

  /** A new value; `around` puts the core into a shape, such as that of a token. */
  plant(name: string, around: (core: string) => string = (core) => core): string {
    const core = randomBytes(16).toString("hex");
    const value = around(core);
    this.planted.push({ name, value, forms: formsOf(core) });
    return value;
  }

  /** A value that somebody else made. */
  adopt(name: string, value: string): string {
    this.planted.push({ name, value, forms: formsOf(value) });
    return value;
  }

  /** The names of those that are in the text, in whatever form. */
  foundIn(text: string | Buffer): readonly string[] {
    const searched = typeof text === "string" ? text : text.toString("latin1");
    return this.planted
      .filter(({ forms }) => forms.some((form) => searched.includes(form)))
      .map(({ name }) => name);
  }
}

export function formsOf(core: string): readonly string[] {
  const base64 = [0, 1, 2].flatMap((offset) => {
    const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(core)]);
    // The characters at both ends also depend on what stands before and behind.
    const first = offset === 0 ? 0 : offset + 1;
    const certain = bytes.toString("base64").slice(first, Math.floor((bytes.length * 8) / 6));
    return [certain, certain.replaceAll("+", "-").replaceAll("/", "_")];
  });
  return [...new Set([core, ...base64, Buffer.from(core).toString("hex")])];
}
