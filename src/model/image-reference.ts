// Reads the reference of a container image, [registry[:port]/]path[:tag][@digest], and refuses what
// is not one. The text goes unchanged into a manifest and from there to the runtime on the node;
// a lax reading here would let a reference mean one registry to krane and another one to the node.

export interface ImageReference {
  /** The text as it was given, which is what the manifest gets. */
  readonly text: string;
  /** Host and port that it is pulled from, in the form that canonicalRegistry gives. */
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
  if (isImageId(text)) return invalid("is the id of an image on a node, which says nothing about its origin");

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

/** The registry that an image is pulled from; undefined for what is no reference. */
export function registryOf(image: string): string | undefined {
  const outcome = parseImageReference(image);
  return outcome.kind === "valid" ? outcome.reference.registry : undefined;
}

/** One spelling per registry, so that hosts can be compared. */
export function canonicalRegistry(host: string): string {
  const lower = host.toLowerCase();
  return dockerHubAliases.includes(lower) ? dockerHub : lower;
}

/**
 * The runtime on a node takes these for the id, or the beginning of the id, of an image that is
 * already there. With it a tenant could run the image that another tenant had pulled.
 */
function isImageId(text: string): boolean {
  return /^sha\d+(?:[:@]|$)/.test(text) || /^[0-9a-f]{64}$/.test(text);
}

/** What stands before the first slash is a host only if it cannot be taken for a part of the path. */
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
  /** Host, and port if it is not that of HTTPS. */
  readonly host: string;
  readonly username: string;
  /** Revealed only while the Secret is built, so that it cannot be printed with its surroundings. */
  readonly password: { reveal(): string };
}
