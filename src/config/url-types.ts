// Kinds for URLs, hosts and registry hosts. The URL class is lenient (backslashes, tabs, "http:/x"), so the text is checked
// first: krane connects to exactly what the file says. A URL with a password is rejected and never quoted.

import { isIP } from "node:net";
import { bad, ok, type Parsed } from "./problem.ts";
import { emptyText, type SettingType, textType } from "./setting-types.ts";

/** An http or https URL without credentials, query or fragment; a trailing slash is dropped. */
export function url(): SettingType<string> {
  return textType({
    label: "URL",
    placeholder: "url",
    parse: (text) => {
      const parsed = readUrl(text);
      return parsed.kind === "bad" ? parsed : ok(parsed.value.href.replace(/\/+$/, ""));
    },
  });
}

/** A registry's host, with or without a scheme; only host and port are kept. */
export function registryHost(): SettingType<string> {
  return textType({
    label: "registry host or URL",
    placeholder: "host",
    parse: (text) => {
      const parsed = readUrl(/^[a-z]+:\/\//i.test(text) || text === "" ? text : `https://${text}`);
      if (parsed.kind === "bad") return parsed;
      // Docker Hub's registry address ends in /v1/. Any other path would look like a restriction to that path, which a
      // pull secret cannot express.
      return /^\/(?:v[12]\/?)?$/.test(parsed.value.pathname)
        ? ok(parsed.value.host)
        : bad("must be a registry host without a path", "keep only the host and port");
    },
  });
}

const hostName = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;

/** An IP address or a host name, without a port. */
export function hostAddress(): SettingType<string> {
  return textType({
    label: "IP address or host name",
    placeholder: "host",
    parse: (text) => {
      if (text === "") return emptyText();
      if (isIP(text) !== 0) return ok(text);
      // Digits and dots that are not an address would be looked up as a name, and never found.
      const isName = text.length <= 253 && hostName.test(text) && !/^[\d.]+$/.test(text);
      return isName
        ? ok(text)
        : bad("is not an IP address or a host name", "write it without a port, and IPv6 without brackets");
    },
  });
}

export function ipAddress(): SettingType<string> {
  return textType({
    label: "IP address",
    placeholder: "address",
    parse: (text) => {
      if (text === "") return emptyText();
      return isIP(text) === 0 ? bad("is not an IP address", "write IPv6 without brackets") : ok(text);
    },
  });
}

function readUrl(text: string): Parsed<URL> {
  if (text === "") return emptyText();
  if (text.length > 2048) return bad("is longer than 2048 characters", "shorten the URL");
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text);
  if (scheme === null) return bad("is not a URL", "write it as https://host or http://host:port");
  if (!/^https?$/i.test(scheme[1] ?? ""))
    return bad("must begin with https:// or http://", "use one of these two schemes");
  const rest = text.slice(scheme[0].length);
  if (/[^!-~]|[\\"<>^`{|}]/.test(rest))
    return bad(
      "contains characters that are not allowed in a URL",
      "remove spaces, quotes and non-ASCII letters",
    );
  if (rest.includes("?") || rest.includes("#"))
    return bad("must not have a query or fragment", 'remove everything from "?" or "#" on');
  if (rest.includes("@"))
    return bad("must not contain credentials", 'remove the part up to "@"; secrets have their own settings');
  if (!URL.canParse(text)) return bad("is not a URL", "check host and port");
  const parsed = new URL(text);
  return parsed.port === "0" ? bad("has port 0, which is not valid", "use the real port") : ok(parsed);
}
