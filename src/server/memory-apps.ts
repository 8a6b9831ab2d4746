// The apps of one region in memory. Nothing awaits between reading and writing.
import { clone } from "@bufbuild/protobuf";
import { type App, AppSchema } from "../gen/krane/admin/v1/app_pb.ts";
import {
  appNameTaken,
  appNews,
  assertNoApp,
  environmentOfApp,
  isSameApp,
  nameOfApp,
  type RowChange,
  removalOfApp,
  rowChanges,
  withVersion,
} from "./apps/app-rules.ts";
import { isActive } from "./apps/releases.ts";
import { type Region, storedObject } from "./memory-region.ts";
import type { AppFacts, Author, ChangeAppOptions, ChangedApp, DecideApp, Row } from "./store.ts";

/** How rows are written: all of them, or none if one is refused. */
export type WriteRows = (changes: readonly RowChange[], dryRun: boolean) => readonly Row<"deployment">[];

export function appFacts(region: Region, id: string, environmentId?: string): AppFacts {
  const { apps, environments } = region;
  const app = apps.get(id);
  const rows = region.tables.deployment.current().filter((row) => row.appId === id);
  const running = rows.filter(({ desired }) => desired !== "stopped");
  return {
    app: app && clone(AppSchema, app),
    deployments: running
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .map((row) => storedObject(region, "deployment", row)),
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
  writeRows: WriteRows,
): ChangedApp {
  const facts = appFacts(region, id, environmentId);
  const before = facts.app;
  const wanted = decide(facts);
  const rows = facts.deployments.map(({ row }) => row);
  if (wanted === undefined) return { before, after: before, stopped: [] };
  if (wanted !== "removed") checkName(region, id, wanted);
  const written = writeRows(rowChanges(id, wanted, rows), dryRun);
  const stopped = written.filter(({ desired }) => desired === "stopped");
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
