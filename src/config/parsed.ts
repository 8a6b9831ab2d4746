// The result of reading one value: the trusted form of it, or what is wrong and what
// to do. The message continues a sentence that begins with the setting's name.

export type Parsed<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "bad"; readonly message: string; readonly remedy: string };

export function ok<T>(value: T): Parsed<T> {
  return { kind: "ok", value };
}

export function bad(message: string, remedy: string): Parsed<never> {
  return { kind: "bad", message, remedy };
}
