// The apps of one region in memory. Nothing awaits between reading and writing.
import { clone } from "@bufbuild/protobuf";
import { type App, AppSchema } from "../gen/krane/admin/v1/app_pb.ts";
import {
  type AppKind,
  appNameTaken,
  appNews,
  assertNoApp,
  environmentOfApp,
  idOfApp,
  isSameApp,
  nameOfApp,
  type RowChange,
  removalOfApp,
  rowChanges,
  withVersion,
  writing,
} from "./apps/app-rules.ts";
import { isActive } from "./apps/releases.ts";
import { type Region, storedObject } from "./memory-region.ts";
import type { AppFacts, Author, ChangeAppOptions, ChangedApp, DecideApp, Row } from "./store.ts";

/** Throws if the row is refused; what it returns writes it. So all rows are written, or none. */
export type PrepareRow = <K extends AppKind>(change: RowChange<K>, dryRun: boolean) => () => WrittenRow;

export interface WrittenRow {
  readonly kind: AppKind;
  readonly row: Row<AppKind>;
}

/** The deployments among written rows whose deletion that orders. */
export function stoppedDeployments(written: readonly WrittenRow[]): readonly Row<"deployment">[] {
  return written.flatMap(({ kind, row }) =>
    // A row written under a kind is a row of that kind.
    kind === "deployment" && row.desired === "stopped" ? [row as Row<"deployment">] : [],
  );
}

export function appFacts(region: Region, id: string, environmentId?: string): AppFacts {
  const { apps, environments } = region;
  const app = apps.get(id);
  const rows = region.tables.deployment.current().filter((row) => row.appId === id);
  const running = rows.filter(({ desired }) => desired !== "stopped");
  const route = region.tables.route.current().find((row) => row.appId === id && row.desired !== "stopped");
  return {
    app: app && clone(AppSchema, app),
    deployments: running
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((row) => storedObject(region, "deployment", row)),
    ...(route && { route: storedObject(region, "route", route) }),
    environment: environments.get(environmentOfApp(app) ?? environmentId ?? ""),
    leftIds: app === undefined ? rows.map((row) => row.id) : [],
  };
}

export function changeApp(
  region: Region,
  id: string,
  decide: DecideApp,
  author: Author,
  { dryRun = false, environmentId }: ChangeAppOptions,
  prepare: PrepareRow,
): ChangedApp {
  const facts = appFacts(region, id, environmentId);
  const before = facts.app;
  const wanted = decide(facts);
  if (wanted === undefined) return { before, after: before, stopped: [] };
  if (wanted !== "removed") checkName(region, id, wanted);
  const writes = rowChanges(id, wanted, facts).map((change) =>
    writing(change, (each) => prepare(each, dryRun)),
  );
  const stopped = stoppedDeployments(writes.map((write) => write()));
  if (wanted === "removed") {
    if (before !== undefined && !dryRun) {
      region.apps.delete(id);
      region.history.add(removalOfApp(before, author));
    }
    return { before, after: undefined, stopped };
  }
  if (isSameApp(before, wanted)) return { before, after: before, stopped };
  if (dryRun) return { before, after: withVersion(wanted, before?.version ?? 0n), stopped };
  region.appCounter += 1n;
  const after = withVersion(wanted, region.appCounter);
  region.apps.set(id, after);
  for (const entry of appNews(before, after, author)) region.history.add(entry);
  return { before, after: clone(AppSchema, after), stopped };
}

/** As it is: its rows are inserted by themselves. */
export function insertApp(region: Region, app: App): void {
  region.apps.set(idOfApp(app), app);
  if (app.version > region.appCounter) region.appCounter = app.version;
}

/** By id. */
export function appsBehind(region: Region, afterId: string, limit: number): readonly AppFacts[] {
  const ids = [...region.apps.keys()].filter((id) => id > afterId).sort();
  return ids.slice(0, limit).map((id) => appFacts(region, id));
}

export function activeIds({ apps }: Region): readonly string[] {
  return [...apps].flatMap(([id, app]) => (isActive(app) ? [id] : []));
}

export function assertNoAppUses({ apps }: Region, environmentId: string, refused?: string): void {
  const user = [...apps].find(([, app]) => environmentOfApp(app) === environmentId);
  assertNoApp(environmentId, user?.[0], refused);
}

function checkName(region: Region, id: string, app: App): void {
  const name = nameOfApp(app);
  const holder = [...region.apps].find(([other, each]) => other !== id && nameOfApp(each) === name);
  if (holder !== undefined) throw appNameTaken(name, holder[0]);
}
