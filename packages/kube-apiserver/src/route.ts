// From a path to the place it names.

export interface ResourcePath {
  readonly group: string;
  readonly version: string;
  /** "" for cluster-wide resources and for all namespaces. */
  readonly namespace: string;
  readonly plural: string;
  /** "" for the collection. */
  readonly name: string;
  readonly subresource: string;
}

/** Undefined where the path does not lead into /api/<version> or /apis/<group>/<version>. */
export function parseResourcePath(path: string): ResourcePath | undefined {
  const segments = path.split("/").slice(1);
  if (segments.some((segment) => segment === "")) return undefined;
  const [root, ...rest] = segments.map(decodeSegment);
  if (root === "api") return parsePlace("", rest[0], rest.slice(1));
  if (root === "apis") return parsePlace(rest[0], rest[1], rest.slice(2));
  return undefined;
}

function parsePlace(
  group: string | undefined,
  version: string | undefined,
  rest: readonly string[],
): ResourcePath | undefined {
  if (group === undefined || version === undefined || rest.length === 0) return undefined;
  const [first = "", second = "", third = "", ...more] = rest;
  // A namespace is an object of its own, and a prefix of everything in it.
  const isInside = first === "namespaces" && third !== "" && !namespaceSubresources.has(third);
  if (isInside) {
    const [name = "", subresource = "", ...beyond] = more;
    if (beyond.length > 0) return undefined;
    return { group, version, namespace: second, plural: third, name, subresource };
  }
  if (more.length > 0) return undefined;
  return { group, version, namespace: "", plural: first, name: second, subresource: third };
}

const namespaceSubresources = new Set(["status", "finalize"]);

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
