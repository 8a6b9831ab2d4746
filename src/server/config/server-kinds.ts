// The kinds of value that only the settings of a server have.
import {
  emptyText,
  isTextList,
  type Kind,
  splitCommas,
  textKind,
  wrongList,
  wrongType,
} from "../../config/kinds.ts";
import { bad, ok, type Parsed } from "../../config/parsed.ts";
import { Secret } from "../../config/secret.ts";
import type { SecretKind } from "../../config/secret-kinds.ts";

export interface ListenAddress {
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
}

/** An address and a port, such as 127.0.0.1:7091 or [::1]:7091. */
export function listenAddress(): Kind<string> {
  return textKind({
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

const secretCharsMax = 1024 * 1024;

/** Never quoted: it holds a password. */
export function databaseUrl(): SecretKind {
  const parse = (text: string): Parsed<Secret> => {
    if (text === "") return emptyText();
    const isUrl = /^postgres(?:ql)?:\/\//.test(text) && URL.canParse(text) && text.length <= 4_096;
    return isUrl
      ? ok(new Secret(text))
      : bad("is not the URL of a PostgreSQL", "write it as postgres://user:password@host:5432/database");
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

export interface AgentToken {
  readonly region: string;
  readonly token: Secret;
}

const tokenLine = /^([A-Za-z0-9][A-Za-z0-9._-]{0,127})[ \t]+([!-~]{16,4096})$/;

/** One line for each: the region, a space, the token. Lines that begin with # say nothing. */
export function agentTokens(): SecretKind {
  const parse = (lines: readonly string[]): Parsed<Secret> => {
    const meant = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
    if (meant.length === 0)
      return bad("has no token in it", 'give one line per region: "us-east-1.aws TOKEN"');
    const wrong = meant.findIndex((line) => !tokenLine.test(line));
    if (wrong >= 0) {
      return bad(
        `entry ${wrong + 1} is not a region, a space and a token`,
        "a token has at least 16 visible characters",
      );
    }
    const joined = meant.join("\n");
    return joined.length > secretCharsMax
      ? bad("is longer than 1 MiB", "check the file")
      : ok(new Secret(joined));
  };
  return {
    label: 'list of "region token"',
    placeholder: "region token,...",
    fromToml: (value) => (isTextList(value) ? parse(value) : wrongList(value)),
    fromText: (text) => parse(splitCommas(text)),
    fromFile: (text) => parse(text.split("\n")),
    show: (secret) => JSON.stringify([String(secret)]),
  };
}

/** What the secret of the kind above holds. */
export function readAgentTokens(secret: Secret): readonly AgentToken[] {
  return secret
    .reveal()
    .split("\n")
    .flatMap((line) => {
      const [, region, token] = tokenLine.exec(line) ?? [];
      return region === undefined || token === undefined ? [] : [{ region, token: new Secret(token) }];
    });
}
