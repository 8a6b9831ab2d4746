// A secret that cannot be printed by accident (K7). Logging, string concatenation, JSON, util.inspect and
// structuredClone all give "[redacted]" or nothing. Only reveal() returns the value, so that every use of a secret can be
// found by searching for it.

const redacted = "[redacted]";

export class Secret {
  // A #private field is invisible to util.inspect, even with showHidden.
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

  // The registered symbol instead of node:util's export, so that this file needs no imports.
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return redacted;
  }
}

/** Where a secret comes from: the configuration itself, or a file that is read when needed and may rotate. */
export type SecretRef =
  | { readonly kind: "inline"; readonly secret: Secret }
  | {
      readonly kind: "file";
      readonly path: string;
      /** The setting that the file replaces, for example "control.token"; decides how the content is checked. */
      readonly setting: string;
      /** The name of the path in messages, if it is not the setting with the suffix `_file`. */
      readonly shownAs?: string;
    };
