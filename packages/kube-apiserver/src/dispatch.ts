// Routes a request to the function that handles it.
import { accessDenied, isAllowed } from "./access.ts";
import type { Core, Scope } from "./core.ts";
import { createFromBody } from "./create.ts";
import { deleteObject, parseDeleteRequest } from "./delete.ts";
import { serveDiscovery } from "./discovery.ts";
import { stringAt } from "./json.ts";
import { listPage, tooLarge } from "./list-pages.ts";
import { serveOpenApi } from "./openapi.ts";
import { patchObject } from "./patch.ts";
import { parseListQuery, parseRevision } from "./query.ts";
import { parseForm, Representation } from "./representation.ts";
import type { ApiResponse, ServerRequest, WholeResponse } from "./request.ts";
import type { ServedResource } from "./resource.ts";
import { handleReview } from "./reviews.ts";
import { parseSelection } from "./selection.ts";
import { createdBody, deletedBody, methodNotAllowed, StatusError, statusBody } from "./status-error.ts";
import type { StoredObject } from "./store.ts";
import { bindPod } from "./subresources/binding.ts";
import { evictPod } from "./subresources/eviction.ts";
import { openLog } from "./subresources/log.ts";
import { patchScale, readScale, updateScale } from "./subresources/scale.ts";
import { requestToken } from "./subresources/token.ts";
import { liveObject, updateFromBody } from "./update.ts";
import { openWatch } from "./watch.ts";

const pageNotFound: WholeResponse = { kind: "whole", status: 404, body: "404 page not found\n" };

export function dispatch(core: Core, request: ServerRequest): ApiResponse {
  try {
    return servePlain(core, request) ?? handleResource(core, request);
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const { code, details } = error.status;
    const wait = details?.retryAfterSeconds;
    const retry = wait === undefined ? {} : { retryAfterSeconds: wait };
    return { kind: "whole", status: code, body: statusBody(error), ...retry };
  }
}

/** Handles non-resource paths: health, version, discovery, schemas. */
function servePlain(core: Core, request: ServerRequest): WholeResponse | undefined {
  if (request.method !== "GET") return undefined;
  const { path } = request;
  if (["/healthz", "/livez", "/readyz"].includes(path)) return { kind: "whole", status: 200, body: "ok" };
  if (path === "/version") return { kind: "whole", status: 200, body: versionInfo };
  return serveDiscovery(core.registry, request) ?? serveOpenApi(core.registry, path);
}

function handleResource(core: Core, request: ServerRequest): ApiResponse {
  const place = parseResourcePath(request.path);
  if (place === undefined || !core.registry.hasGroup(place.group)) return pageNotFound;
  const resource = core.registry.find(place.group, place.version, place.plural);
  if (resource === undefined || !isPlaceOf(resource, place)) throw noSuchResource();
  const { namespace, name, subresource } = place;
  const scope: Scope = { core, request, resource, namespace, name, subresource, warnings: [] };
  authorize(scope);
  parseForm(request.accept);
  const response = name === "" ? handleCollection(scope) : handleObject(scope);
  if (response.kind === "stream" || scope.warnings.length === 0) return response;
  return { ...response, warnings: scope.warnings };
}

function isPlaceOf({ kind }: ServedResource, place: ResourcePath): boolean {
  if (!kind.namespaced) return place.namespace === "";
  // Without a namespace, a namespaced kind can only be listed, watched and reviewed.
  return place.namespace !== "" || place.name === "";
}

function noSuchResource(): StatusError {
  return new StatusError(404, "NotFound", "the server could not find the requested resource", {});
}

function authorize(scope: Scope): void {
  const { core, request, resource, namespace, name, subresource } = scope;
  const { group, plural } = resource.kind;
  const place = subresource === "" ? plural : `${plural}/${subresource}`;
  const question = { user: request.user, verb: verbOf(scope), group, resource: place, namespace, name };
  if (!isAllowed(core.rules, question)) throw accessDenied(question);
}

function verbOf({ request, name }: Scope): string {
  const isWatch = request.query?.["watch"] !== undefined && request.query["watch"] !== "false";
  switch (request.method) {
    case "GET":
      return name !== "" ? "get" : isWatch ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
  }
}

function handleCollection(scope: Scope): ApiResponse {
  const { request, resource, namespace } = scope;
  if (resource.virtual) {
    if (request.method !== "POST") throw methodNotAllowed();
    return { kind: "whole", status: 201, body: handleReview(scope, request.body) };
  }
  const needsNamespace = resource.kind.namespaced && namespace === "";
  switch (request.method) {
    case "GET":
      return listOrWatch(scope);
    case "POST":
      if (needsNamespace) throw methodNotAllowed();
      checkContentType(request);
      return represent(scope, 201, createFromBody(scope, request.body));
    case "DELETE":
      if (needsNamespace) throw methodNotAllowed();
      return deleteCollection(scope);
    default:
      throw methodNotAllowed();
  }
}

function listOrWatch(scope: Scope): ApiResponse {
  const query = parseListQuery(scope.request);
  if (query.watch) return openWatch(scope, query);
  const { items, meta } = listPage(scope, query, parseSelection(scope, query));
  return { kind: "whole", status: 200, body: representation(scope).list(items, meta) };
}

function deleteCollection(scope: Scope): WholeResponse {
  const { request } = scope;
  const query = parseListQuery(request);
  const asked = parseDeleteRequest(scope);
  const { items, meta } = listPage(scope, { ...query, limit: 0 }, parseSelection(scope, query));
  for (const object of items) {
    const name = stringAt(object, "metadata", "name") ?? "";
    deleteObject({ ...scope, name }, { ...asked, uid: stringAt(object, "metadata", "uid") });
  }
  return { kind: "whole", status: 200, body: representation(scope).list(items, meta) };
}

function handleObject(scope: Scope): ApiResponse {
  const { request, resource, subresource } = scope;
  if (subresource === "scale" && resource.scale !== undefined) return handleScale(scope);
  if (subresource !== "" && !(subresource === "status" && resource.statusSubresource))
    return handleSubresource(scope);
  switch (request.method) {
    case "GET":
      return readObject(scope);
    case "PUT": {
      checkContentType(request);
      const { object, created } = updateFromBody(scope, request.body);
      return represent(scope, created ? 201 : 200, object);
    }
    case "PATCH": {
      const { object, created } = patchObject(scope, request.body);
      return represent(scope, created ? 201 : 200, object);
    }
    case "DELETE":
      if (subresource !== "") throw methodNotAllowed();
      return handleDeletion(scope);
    default:
      throw methodNotAllowed();
  }
}

function checkContentType({ contentType }: ServerRequest): void {
  if (contentType === undefined || contentType.includes("json")) return;
  const message =
    "the body of the request was in an unknown format - accepted media types include: application/json";
  throw new StatusError(415, "UnsupportedMediaType", message);
}

function readObject(scope: Scope): WholeResponse {
  const { store } = scope.core;
  const revision = parseRevision(scope.request.query?.["resourceVersion"] ?? "") ?? 0;
  if (revision > store.revision) throw tooLarge(revision, store.revision);
  return represent(scope, 200, liveObject(scope));
}

function handleDeletion(scope: Scope): WholeResponse {
  const { resource } = scope;
  const { object, isGone } = deleteObject(scope, parseDeleteRequest(scope));
  if (!isGone || resource.deleteReturnsObject) return represent(scope, 200, object);
  const uid = stringAt(object, "metadata", "uid") ?? "";
  return { kind: "whole", status: 200, body: deletedBody(resource.kind, scope.name, uid) };
}

function handleScale(scope: Scope): WholeResponse {
  const { method, body } = scope.request;
  if (method === "GET") return { kind: "whole", status: 200, body: readScale(scope) };
  if (method === "PUT") return { kind: "whole", status: 200, body: updateScale(scope, body) };
  if (method === "PATCH") return { kind: "whole", status: 200, body: patchScale(scope, body) };
  throw methodNotAllowed();
}

function handleSubresource(scope: Scope): ApiResponse {
  const { request, resource, subresource } = scope;
  if (!resource.subresources?.includes(subresource)) throw noSuchResource();
  if (subresource === "finalize") {
    if (request.method !== "PUT") throw methodNotAllowed();
    return represent(scope, 200, updateFromBody(scope, request.body).object);
  }
  if (subresource === "log") {
    if (request.method !== "GET") throw methodNotAllowed();
    return openLog(scope);
  }
  if (request.method !== "POST") throw methodNotAllowed();
  switch (subresource) {
    case "binding":
      return { kind: "whole", status: 201, body: bindPod(scope, request.body) };
    case "eviction":
      return { kind: "whole", status: 201, body: evictPod(scope, request.body) };
    case "token":
      return { kind: "whole", status: 201, body: requestToken(scope, request.body) };
    default:
      return { kind: "whole", status: 201, body: createdBody() };
  }
}

function representation(scope: Scope): Representation {
  return new Representation(scope.resource, parseForm(scope.request.accept), scope.core.clock.wallMs());
}

function represent(scope: Scope, status: number, object: StoredObject): WholeResponse {
  return { kind: "whole", status, body: representation(scope).object(object) };
}

// The Kubernetes release that this server follows.
const versionInfo = {
  major: "1",
  minor: "36",
  gitVersion: "v1.36.0+embedded",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "",
} as const;

interface ResourcePath {
  readonly group: string;
  readonly version: string;
  /** "" for cluster-wide resources and for all namespaces. */
  readonly namespace: string;
  readonly plural: string;
  /** "" for the collection. */
  readonly name: string;
  readonly subresource: string;
}

/** Undefined if the path is not below /api/<version> or /apis/<group>/<version>. */
function parseResourcePath(path: string): ResourcePath | undefined {
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
  // "namespaces" is both a kind and the prefix of namespaced paths.
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
