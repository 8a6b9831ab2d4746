// The value types that only server settings use.

import { bad, ok, type Parsed } from "../../config/problem.ts";
import { Secret } from "../../config/secret.ts";
import type { SecretType } from "../../config/secret-types.ts";
import { emptyText, type SettingType, textType, wrongType } from "../../config/setting-types.ts";
import { url } from "../../config/url-types.ts";
import { parseGroupRole } from "../oidc/access.ts";

export interface ListenAddress {
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
}

/** An address and a port, such as 127.0.0.1:7091 or [::1]:7091. */
export function listenAddress(): SettingType<string> {
  return textType({
    label: "host:port",
    placeholder: "host:port",
    parse: (text) =>
      parseListen(text) === undefined
        ? bad("is not an address and a port", "write it as 127.0.0.1:7091, [::1]:7091 or 0.0.0.0:7091")
        : ok(text),
  });
}

export function parseListen(text: string): ListenAddress | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? undefined : { host, port };
}

/** Never quoted in messages: it holds a password. */
export function databaseUrl(): SecretType {
  const parse = (text: string): Parsed<Secret> => {
    if (text === "") return emptyText();
    const isUrl = /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text) && text.length <= 4_096;
    return isUrl
      ? ok(new Secret(text))
      : bad(
          "is not a PostgreSQL URL",
          // Split up, because written as one URL the redaction of passwords would remove it.
          "write it as postgres:// followed by user:password@host:5432/database",
        );
  };
  return {
    label: "postgres URL",
    placeholder: "url",
    fromToml: (value) =>
      typeof value === "string" ? parse(value) : wrongType("a string", value, "put the value in quotes"),
    fromText: parse,
    fromFile: (text) => parse(text.replace(/\r?\n$/, "")),
    show: (secret) => JSON.stringify(String(secret)),
  };
}

/** A role of a group of an OpenID Connect provider; see oidc/access.ts. */
export function groupRole(): SettingType<string> {
  return textType({
    label: '"group role region..."',
    placeholder: "group role region...",
    parse: (text) =>
      parseGroupRole(text) === undefined
        ? bad(
            'is not of the form "group role region..."',
            'the role is read-only, read-write, logs or read-write+logs; write "*" for every region: "sre read-write *"',
          )
        : ok(text),
  });
}

/** Scheme, host and port, without a path. */
export function origin(): SettingType<string> {
  const parseUrl = url().fromText;
  return textType({
    label: "URL",
    placeholder: "url",
    parse: (text) => {
      const parsed = parseUrl(text);
      if (parsed.kind === "bad") return parsed;
      const { origin: own, pathname } = new URL(parsed.value);
      return pathname === "/" ? ok(own) : bad("has a path", "keep the scheme, the host and the port");
    },
  });
}
