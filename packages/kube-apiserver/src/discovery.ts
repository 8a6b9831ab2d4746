// Serves the discovery endpoints: API groups, versions and resources.

import type { ResourceRegistry } from "./registry.ts";
import type { ServerRequest, WholeResponse } from "./request.ts";
import { apiVersionOf, type ServedResource } from "./resource.ts";

const verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** The response for a discovery path, or undefined for any other path. */
export function serveDiscovery(
  registry: ResourceRegistry,
  request: ServerRequest,
): WholeResponse | undefined {
  const path = request.path.replace(/\/$/, "");
  const wantsAll = request.accept?.includes("as=APIGroupDiscoveryList") && request.accept.includes(";v=v2;");
  if (path === "/api" || path === "/apis") {
    if (wantsAll) return { ...whole(aggregated(registry, path === "/api")), contentType: aggregatedType };
    return whole(path === "/api" ? { kind: "APIVersions", versions: ["v1"] } : groupList(registry));
  }
  const group = /^\/apis\/([^/]+)$/.exec(path)?.[1];
  if (group !== undefined)
    return registry.hasGroup(group) ? whole(describeGroup(registry, group, true)) : undefined;
  const match = /^\/api\/([^/]+)$/.exec(path) ?? /^\/apis\/([^/]+)\/([^/]+)$/.exec(path);
  if (match === null) return undefined;
  const [, first = "", second] = match;
  const [name, version] = second === undefined ? ["", first] : [first, second];
  return registry.hasVersion(name, version) ? whole(resourceList(registry, name, version)) : undefined;
}

function whole(body: unknown): WholeResponse {
  return { kind: "whole", status: 200, body };
}

function groupNames(registry: ResourceRegistry): string[] {
  return [...new Set(registry.all().map(({ kind }) => kind.group))].filter((group) => group !== "");
}

function versionsOf(registry: ResourceRegistry, group: string): string[] {
  const served = registry.all().filter(({ kind }) => kind.group === group);
  return [...new Set(served.map(({ kind }) => kind.version))];
}

function groupList(registry: ResourceRegistry) {
  const groups = groupNames(registry).map((group) => describeGroup(registry, group, false));
  return { kind: "APIGroupList", apiVersion: "v1", groups };
}

function describeGroup(registry: ResourceRegistry, name: string, withType: boolean) {
  const versions = versionsOf(registry, name).map((version) => ({
    groupVersion: `${name}/${version}`,
    version,
  }));
  const typeMeta = withType ? { kind: "APIGroup", apiVersion: "v1" } : {};
  return { ...typeMeta, name, versions, preferredVersion: versions[0] };
}

function resourceList(registry: ResourceRegistry, group: string, version: string) {
  const served = registry.all().filter(({ kind }) => kind.group === group && kind.version === version);
  return {
    kind: "APIResourceList",
    ...(group === "" ? {} : { apiVersion: "v1" }),
    groupVersion: apiVersionOf({ group, version }),
    resources: served.flatMap(listedResources),
  };
}

function listedResources(resource: ServedResource) {
  const { kind, shortNames, categories, singular } = resource;
  const own = {
    name: kind.plural,
    singularName: singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: resource.virtual ? ["create"] : verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
  };
  const below = subresourcesOf(resource).map(({ name, kind: target, verbs: allowed }) => ({
    name: `${kind.plural}/${name}`,
    singularName: "",
    namespaced: kind.namespaced,
    ...(target.group === "" ? {} : { group: target.group, version: target.version }),
    kind: target.kind,
    verbs: allowed,
  }));
  return [own, ...below];
}

interface Subresource {
  readonly name: string;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly verbs: readonly string[];
}

const subresourceKinds = new Map<string, Subresource["kind"]>([
  ["binding", { group: "", version: "", kind: "Binding" }],
  ["eviction", { group: "policy", version: "v1", kind: "Eviction" }],
  ["token", { group: "authentication.k8s.io", version: "v1", kind: "TokenRequest" }],
]);

const subresourceVerbs = new Map<string, readonly string[]>([
  ["finalize", ["update"]],
  ["log", ["get"]],
]);

function subresourcesOf(resource: ServedResource): Subresource[] {
  const own = { group: "", version: "", kind: resource.kind.kind };
  const change = ["get", "patch", "update"];
  return [
    ...(resource.subresources ?? []).map((name) => ({
      name,
      kind: subresourceKinds.get(name) ?? own,
      verbs: subresourceVerbs.get(name) ?? ["create"],
    })),
    ...(resource.scale
      ? [{ name: "scale", kind: { group: "autoscaling", version: "v1", kind: "Scale" }, verbs: change }]
      : []),
    ...(resource.statusSubresource ? [{ name: "status", kind: own, verbs: change }] : []),
  ];
}

function aggregated(registry: ResourceRegistry, isCore: boolean) {
  const groups = isCore ? [""] : groupNames(registry);
  return {
    kind: "APIGroupDiscoveryList",
    apiVersion: "apidiscovery.k8s.io/v2",
    metadata: {},
    items: groups.map((group) => ({
      metadata: group === "" ? {} : { name: group },
      versions: versionsOf(registry, group).map((version) => ({
        version,
        resources: registry
          .all()
          .filter(({ kind }) => kind.group === group && kind.version === version)
          .map(aggregatedResource),
        freshness: "Current",
      })),
    })),
  };
}

function aggregatedResource(resource: ServedResource) {
  const { kind, shortNames, categories, singular } = resource;
  const below = subresourcesOf(resource);
  return {
    resource: kind.plural,
    responseKind: { group: "", version: "", kind: kind.kind },
    scope: kind.namespaced ? "Namespaced" : "Cluster",
    singularResource: singular,
    verbs: resource.virtual ? ["create"] : verbs,
    ...(shortNames.length === 0 ? {} : { shortNames }),
    ...(categories.length === 0 ? {} : { categories }),
    ...(below.length === 0
      ? {}
      : {
          subresources: below.map(({ name, kind: target, verbs: allowed }) => ({
            subresource: name,
            responseKind: target,
            verbs: allowed,
          })),
        }),
  };
}
