// Kinds whose value is a secret. Inline values and the content of a `*_file` pass the same checks, so that a rotated
// secret is checked like the first one.

import { bad, ok, type Parsed } from "./problem.ts";
import { Secret } from "./secret.ts";
import {
  emptyText,
  hasControlCharacter,
  isTextList,
  type SettingType,
  splitCommas,
  wrongList,
  wrongType,
} from "./setting-types.ts";

export interface SecretType extends SettingType<Secret> {
  /** Parses the content of the secret's file. */
  fromFile(text: string): Parsed<Secret>;
}

const secretLengthMax = 16_384;

/** A bearer token for an HTTP header. */
export function bearerToken(): SecretType {
  return secretText("token", (text) =>
    /^[!-~]+$/.test(text)
      ? ok(new Secret(text))
      : bad(
          "contains a character that is not allowed in an HTTP header",
          "look for a newline, space or non-ASCII letter, often at the end",
        ),
  );
}

export function password(): SecretType {
  return secretText("password", (text) =>
    hasControlCharacter(text)
      ? bad("contains a control character", "look for a newline or tab, often at the end")
      : ok(new Secret(text)),
  );
}

function secretText(noun: string, check: (text: string) => Parsed<Secret>): SecretType {
  const parse = (text: string): Parsed<Secret> => {
    if (text === "") return emptyText();
    return text.length > secretLengthMax ? tooLong() : check(text);
  };
  return {
    label: noun,
    placeholder: noun,
    fromToml: (value) =>
      typeof value === "string" ? parse(value) : wrongType("a string", value, "put the value in quotes"),
    fromText: parse,
    // Editors and `kubectl create secret` leave a trailing newline that is not part of the secret.
    fromFile: (text) => parse(text.replace(/\r?\n$/, "")),
    show: (secret) => JSON.stringify(String(secret)),
  };
}

/** Base64 keys: a list in TOML, comma-separated in a variable, one per line in a file and in the Secret. */
export function masterKeys(): SecretType {
  const parse = (keys: readonly string[]): Parsed<Secret> => {
    if (keys.length === 0) return bad("contains no key", "add at least one key; the last one encrypts");
    const wrong = keys.findIndex((key) => !isBase64(key));
    if (wrong >= 0)
      return bad(
        `entry ${wrong + 1} is not standard base64`,
        "copy the whole key, including its + / and = characters",
      );
    const joined = keys.join("\n");
    return joined.length > secretLengthMax ? tooLong() : ok(new Secret(joined));
  };
  return {
    label: "list of base64 keys",
    placeholder: "key,key,...",
    fromToml: (value) => (isTextList(value) ? parse(value) : wrongList(value)),
    fromText: (text) => parse(splitCommas(text)),
    fromFile: (text) => parse(text.split(/\r?\n/).filter((line) => line !== "")),
    show: (secret) => JSON.stringify([String(secret)]),
  };
}

function isBase64(text: string): boolean {
  return text.length > 0 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

function tooLong(): Parsed<never> {
  return bad(
    `is longer than ${secretLengthMax} characters`,
    "check that it is the secret and not another file",
  );
}
