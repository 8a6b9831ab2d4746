// A secret that cannot be printed by accident (K7). Logging, string building, JSON,
// util.inspect and structuredClone all see "[redacted]" or nothing; reveal() is the
// only way out, so that every place a secret leaves krane can be found by its name.

const redacted = "[redacted]";

export class Secret {
  // A #private field is invisible to inspection even with showHidden; a symbol or
  // WeakMap-backed field would be listed there.
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    Object.freeze(this);
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return redacted;
  }

  toJSON(): string {
    return redacted;
  }

  [Symbol.toPrimitive](): string {
    return redacted;
  }

  // The registered symbol is used instead of node:util's export, so that this file
  // stays free of imports and works for any library that honours it.
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return redacted;
  }
}

/** Where a secret is: in the configuration itself, or in a file that is read when needed and may rotate. */
export type SecretRef =
  | { readonly kind: "inline"; readonly secret: Secret }
  | {
      readonly kind: "file";
      readonly path: string;
      /** The setting the file stands in for, such as "control.token"; decides how its content is checked. */
      readonly setting: string;
      /** What a person calls the path, where it is not the setting with `_file` behind it. */
      readonly shownAs?: string;
    };
