// The result of parsing one value: the parsed value, or a message and a remedy. The message is written to follow the
// setting's name.

export type Parsed<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "bad"; readonly message: string; readonly remedy: string };

export function ok<T>(value: T): Parsed<T> {
  return { kind: "ok", value };
}

export function bad(message: string, remedy: string): Parsed<never> {
  return { kind: "bad", message, remedy };
}
