// Parses the reference of a container image, [registry[:port]/]path[:tag][@digest], and rejects anything else. The text
// goes unchanged into a manifest and on to the container runtime; a lax parser could make a reference mean one registry
// to krane and another one to the node.

export interface ImageReference {
  /** The original text, as it goes into the manifest. */
  readonly text: string;
  /** Host and port that it is pulled from, as canonicalRegistry returns them. */
  readonly registry: string;
  readonly path: string;
  readonly tag?: string;
  readonly digest?: string;
}

export type ImageReferenceOutcome =
  | { readonly kind: "valid"; readonly reference: ImageReference }
  | { readonly kind: "invalid"; readonly reason: string };

const textLengthMax = 1024;
const nameLengthMax = 255;

const hostLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const registryPattern = new RegExp(
  `^(?:${hostLabel}(?:\\.${hostLabel})*|\\[[0-9A-Fa-f:]{2,45}\\])(?::([0-9]{1,5}))?$`,
);
const pathPart = /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/;
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const digestPattern = /^(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})$/;

const dockerHub = "docker.io";
const dockerHubAliases = ["index.docker.io", "registry-1.docker.io"];

export function parseImageReference(text: string): ImageReferenceOutcome {
  if (text === "") return invalid("is required");
  if (text.length > textLengthMax) return invalid(`is longer than ${textLengthMax} characters`);
  if (!/^[!-~]*$/.test(text)) return invalid("has a space, a control character or a letter outside ASCII");
  if (isImageId(text)) return invalid("is the id of an image on a node, which does not name a registry");

  const [nameAndTag = "", digest, ...more] = text.split("@");
  if (more.length > 0 || (digest !== undefined && !digestPattern.test(digest))) {
    return invalid("has a digest that is not sha256, sha384 or sha512 in lower-case hex");
  }
  const tagAt = nameAndTag.indexOf(":", nameAndTag.lastIndexOf("/") + 1);
  const name = tagAt < 0 ? nameAndTag : nameAndTag.slice(0, tagAt);
  const tag = tagAt < 0 ? undefined : nameAndTag.slice(tagAt + 1);
  if (tag !== undefined && !tagPattern.test(tag)) return invalid("has a malformed tag");
  if (name.length > nameLengthMax) return invalid(`has a name longer than ${nameLengthMax} characters`);

  const { host, path } = splitName(name);
  if (host !== undefined && !isRegistry(host)) return invalid("has a malformed registry host");
  if (!path.split("/").every((part) => pathPart.test(part))) return invalid("has a malformed name");
  const registry = canonicalRegistry(host ?? dockerHub);
  return {
    kind: "valid",
    reference: {
      text,
      registry,
      path,
      ...(tag !== undefined && { tag }),
      ...(digest !== undefined && { digest }),
    },
  };
}

/** One spelling per registry, so that hosts can be compared. */
export function canonicalRegistry(host: string): string {
  const lower = host.toLowerCase();
  return dockerHubAliases.includes(lower) ? dockerHub : lower;
}

/**
 * The container runtime interprets these as the id, or a prefix of the id, of an image that is already on the node. With
 * it a tenant could run an image that another tenant had pulled.
 */
function isImageId(text: string): boolean {
  return /^sha\d+(?:[:@]|$)/.test(text) || /^[0-9a-f]{64}$/.test(text);
}

/** The part before the first slash is a host only if it cannot be part of the path. */
function splitName(name: string): { host?: string; path: string } {
  const slash = name.indexOf("/");
  const first = name.slice(0, Math.max(slash, 0));
  const isHost = /[.:A-Z]/.test(first) || first === "localhost";
  return isHost ? { host: first, path: name.slice(slash + 1) } : { path: name };
}

function isRegistry(host: string): boolean {
  const match = registryPattern.exec(host);
  if (match === null) return false;
  const [, port] = match;
  return port === undefined || (Number(port) >= 1 && Number(port) <= 65_535);
}

function invalid(reason: string): ImageReferenceOutcome {
  return { kind: "invalid", reason };
}

export interface RegistryCredentials {
  /** Host, and port if it is not 443. */
  readonly host: string;
  readonly username: string;
  /** Revealed only while the Secret is built, so that it cannot be printed by accident. */
  readonly password: { reveal(): string };
}
