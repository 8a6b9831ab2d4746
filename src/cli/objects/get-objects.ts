// krane get: lists objects, pods, apps and environments, or shows one, once or with every change.
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type AppView,
  AppViewSchema,
  ObjectView_Desired as Desired,
  type Environment,
  EnvironmentSchema,
  type ObjectView,
  ObjectViewSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { contentOfEnvironment } from "../../kinds/document-changes.ts";
import { contentOfView } from "../../kinds/documents.ts";
import { type KindName, kinds } from "../../kinds/kinds.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { type AgentHeard, loadAgentHeard, withHeard } from "../admin/agent-silence.ts";
import { appCells, appTitles, mixedAppCells, titleOfApp } from "../apps/app-rows.ts";
import { findApp, listApps } from "../apps/app-search.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { jsonOf } from "../terminal/output.ts";
import { findEnvironment, listEnvironments } from "./environment-search.ts";
import { type ListedItem, type Listing, printListing } from "./listing.ts";
import { resolveName } from "./named-object.ts";
import { type NamedKind, objectKindOf, splitName } from "./object-names.ts";
import { environmentCells, environmentTitles, objectColumns, type TableOptions } from "./object-rows.ts";
import { findObject, listObjects, titleOf } from "./object-search.ts";
import { findPods, namesPods, podItem, podTitles } from "./pod-list.ts";
import { factsOfApp, factsOfEnvironment, factsOfObject, parseSelector, type Selector } from "./selector.ts";
import { watchListing } from "./watched-list.ts";

export interface GetOptions {
  readonly environment?: string;
  readonly selector?: string;
  readonly deleted?: true;
  readonly sortBy?: string;
  readonly watch?: true;
}

interface Query {
  readonly kind: NamedKind | "all" | "pod";
  readonly name: string | undefined;
  /** Empty for all. */
  readonly environmentId: string;
  readonly includeDeleted: boolean;
  readonly selector: Selector;
}

export async function getObjects(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
  options: GetOptions,
): Promise<number> {
  const query = await parseQuery(admin, what, options);
  const load = () => loadListing(admin, query);
  if (options.watch) return watchListing(admin, io, load);
  await printListing(admin, io, await load(), options);
  return exitCodes.ok;
}

async function parseQuery(
  admin: Admin,
  what: { readonly kind: string; readonly name: string | undefined },
  { environment = "", selector, deleted = undefined }: GetOptions,
): Promise<Query> {
  const rest = {
    environmentId: environment,
    includeDeleted: deleted === true,
    selector: selector === undefined ? () => true : parseSelector(selector),
  };
  if (what.kind === "all" && what.name === undefined) return { kind: "all", name: undefined, ...rest };
  if (namesPods(what.kind)) return { kind: "pod", name: splitName(what.kind, what.name).name, ...rest };
  return { ...(await resolveName(admin, { first: what.kind, second: what.name })), ...rest };
}

async function loadListing(admin: Admin, query: Query): Promise<Listing> {
  const { kind } = query;
  if (kind === "environment") return environmentListing(admin, query);
  const heard = await loadAgentHeard(admin);
  if (kind === "app") return appListing(admin, query, heard);
  if (kind === "pod") return podListing(admin, query, heard);
  return kind === "all" ? mixedListing(admin, query, heard) : objectListing(admin, { ...query, kind }, heard);
}

/** Apps, then the objects in the cluster. */
async function mixedListing(admin: Admin, query: Query, heard: AgentHeard): Promise<Listing> {
  const shape = { ...tableOptions(admin), ...heard };
  const apps = (await appsOfQuery(admin, query).catch(noneIfOlder)).map((view) => ({
    ...appItem(view, shape, heard),
    cells: mixedAppCells(view, shape),
  }));
  const objects = await objectListing(admin, { ...query, kind: "all" }, heard);
  return {
    ...objects,
    items: [...apps, ...objects.items],
    wrap: (values) => ({
      apps: values.slice(0, apps.length),
      objects: values.slice(apps.length),
      nextPageToken: "",
    }),
  };
}

/** An older control plane has no apps. */
function noneIfOlder(error: unknown): readonly AppView[] {
  if (error instanceof ConnectError && error.code === Code.Unimplemented) return [];
  throw error;
}

async function objectListing(
  admin: Admin,
  query: Query & { readonly kind: KindName | "all" },
  heard: AgentHeard,
): Promise<Listing> {
  const { kind, name, environmentId, includeDeleted, selector } = query;
  const shape = { ...tableOptions(admin), ...heard };
  const columns = objectColumns(kind, shape);
  const item = (object: ObjectView): ListedItem => {
    const isOwn = object.desired !== Desired.STOPPED && object.appId === "";
    return {
      title: titleOf(object.ref),
      json: withHeard(jsonOf(ObjectViewSchema, object), heard),
      cells: columns.map(({ cell }) => cell(object, shape)),
      content: isOwn ? contentOfView(object) : undefined,
    };
  };
  const titles = columns.map(({ title }) => title);
  if (name !== undefined && kind !== "all") {
    const { object } = await findObject(admin, name, objectKindOf(kind));
    return single(titles, item(object));
  }
  const objects = await listObjects(admin, {
    ...(kind !== "all" && { kind: objectKindOf(kind) }),
    environmentId,
    includeDeleted,
  });
  const of = environmentId === "" ? "" : ` of environment ${printable(environmentId)}`;
  return {
    titles,
    items: objects.filter((object) => selector(factsOfObject(object))).map(item),
    absence: `no ${kind === "all" ? "objects" : kinds[kind].plural}${of} in region ${admin.region}`,
    wrap: (values) => ({ objects: [...values], nextPageToken: "" }),
  };
}

async function podListing(admin: Admin, query: Query, heard: AgentHeard): Promise<Listing> {
  const shape = { ...tableOptions(admin), ...heard };
  const pods = (await findPods(admin, query)).map((pod) => podItem(pod, shape));
  return {
    titles: podTitles(shape),
    items: pods.map((item) => ({ ...item, json: withHeard(item.json, heard) })),
    absence: `no pods were reported in region ${admin.region}`,
    wrap: (values) => ({ pods: [...values] }),
  };
}

async function appListing(admin: Admin, query: Query, heard: AgentHeard): Promise<Listing> {
  const { name } = query;
  const shape = { ...tableOptions(admin), ...heard };
  const titles = appTitles(shape);
  if (name !== undefined) return single(titles, appItem((await findApp(admin, name)).view, shape, heard));
  const apps = await appsOfQuery(admin, query);
  return {
    titles,
    items: apps.map((view) => appItem(view, shape, heard)),
    absence: `no apps in region ${admin.region}`,
    wrap: (values) => ({ apps: [...values] }),
  };
}

async function appsOfQuery(admin: Admin, { environmentId, selector }: Query): Promise<readonly AppView[]> {
  return (await listApps(admin, admin.region)).filter((view) => {
    const facts = factsOfApp(view);
    return selector(facts) && ["", facts.environment].includes(environmentId);
  });
}

function appItem(view: AppView, shape: TableOptions, heard: AgentHeard): ListedItem {
  const { spec } = view.app ?? {};
  return {
    title: titleOfApp(view),
    json: withHeard(jsonOf(AppViewSchema, view), heard),
    cells: appCells(view, shape),
    content: spec && { kind: "app", spec },
  };
}

async function environmentListing(admin: Admin, { name, selector }: Query): Promise<Listing> {
  const shape = tableOptions(admin);
  const item = (environment: Environment): ListedItem => ({
    title: `environment/${printable(environment.id)}`,
    json: jsonOf(EnvironmentSchema, environment),
    cells: environmentCells(environment, shape),
    content: contentOfEnvironment(environment),
  });
  const titles = environmentTitles(shape);
  if (name !== undefined) return single(titles, item(await findEnvironment(admin, name)));
  const environments = await listEnvironments(admin, admin.region);
  return {
    titles,
    items: environments.filter((each) => selector(factsOfEnvironment(each))).map(item),
    absence: `no environments in region ${admin.region}`,
    wrap: (values) => ({ environments: [...values], nextPageToken: "" }),
  };
}

/** Found by name, so the result is its value alone. */
function single(titles: readonly string[], item: ListedItem): Listing {
  return { titles, items: [item], absence: "", wrap: ([value = null]) => value };
}

function tableOptions({ output, now }: Admin): TableOptions {
  return { wide: output === "wide", nowMs: now() };
}
