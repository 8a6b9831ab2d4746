// The views and their URLs. Every view has one, so that it can be shared. Pure.

export type Route =
  | { readonly view: "fleet" }
  | { readonly view: "held" }
  | { readonly view: "region"; readonly region: string; readonly filter: Filter }
  | { readonly view: "object"; readonly region: string; readonly kind: string; readonly id: string }
  | { readonly view: "apply"; readonly region: string; readonly of?: Named }
  | { readonly view: "unknown"; readonly path: string };

/** An object or app by its kind and id. */
export interface Named {
  readonly kind: string;
  readonly id: string;
}

/** What a list of objects is narrowed to. */
export interface Filter {
  readonly text: string;
  /** The plural of a kind; empty for all. */
  readonly kind: string;
  /** Only what needs somebody to look at it. */
  readonly troubledOnly: boolean;
}

export const noFilter: Filter = { text: "", kind: "", troubledOnly: false };

const base = "/dashboard/";

export function parseRoute({
  pathname,
  search,
}: {
  readonly pathname: string;
  readonly search: string;
}): Route {
  const unknown = { view: "unknown", path: pathname } as const;
  if (!pathname.startsWith(base)) return unknown;
  const parts = decoded(pathname.slice(base.length).replace(/\/$/, "").split("/"));
  if (parts === undefined) return unknown;
  const [first = "", region = "", kind, id, ...rest] = parts;
  if (first === "" && parts.length === 1) return { view: "fleet" };
  if (first === "held" && parts.length === 1) return { view: "held" };
  if (first !== "regions" || region === "" || rest.length > 0) return unknown;
  if (kind === undefined) return { view: "region", region, filter: parseFilter(search) };
  if (kind === "apply" && id === undefined) return { view: "apply", region, ...parseOf(search) };
  if (id === undefined || id === "" || kind === "") return unknown;
  return { view: "object", region, kind, id };
}

/** Undefined if a part is not valid percent-encoding. */
function decoded(parts: readonly string[]): readonly string[] | undefined {
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function parseFilter(search: string): Filter {
  const query = new URLSearchParams(search);
  return {
    text: query.get("q") ?? "",
    kind: query.get("kind") ?? "",
    troubledOnly: query.get("troubled") === "1",
  };
}

function parseOf(search: string): { readonly of?: Named } {
  const [kind = "", ...id] = (new URLSearchParams(search).get("of") ?? "").split("/");
  return kind === "" || id.length === 0 ? {} : { of: { kind, id: id.join("/") } };
}

export function urlOf(route: Exclude<Route, { view: "unknown" }>): string {
  if (route.view === "fleet") return base;
  if (route.view === "held") return `${base}held`;
  const region = `${base}regions/${encodeURIComponent(route.region)}`;
  if (route.view === "object")
    return `${region}/${encodeURIComponent(route.kind)}/${encodeURIComponent(route.id)}`;
  if (route.view === "apply") {
    const { of } = route;
    return `${region}/apply${of === undefined ? "" : `?${new URLSearchParams({ of: `${of.kind}/${of.id}` })}`}`;
  }
  const { text, kind, troubledOnly } = route.filter;
  const query = new URLSearchParams({
    ...(text !== "" && { q: text }),
    ...(kind !== "" && { kind }),
    ...(troubledOnly && { troubled: "1" }),
  }).toString();
  return query === "" ? region : `${region}?${query}`;
}
