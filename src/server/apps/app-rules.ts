// What every store does when it changes an app, with the same errors: which rows of deployments follow from it, and what
// history says about it.
import { clone, equals } from "@bufbuild/protobuf";
import {
  type App,
  AppSchema,
  AppSpecSchema,
  Release_Phase as Phase,
  type Release,
} from "../../gen/krane/admin/v1/app_pb.ts";
import { releaseNumber } from "../../kinds/deployment/release-names.ts";
import { isSame } from "../row-rules.ts";
import {
  type AppFacts,
  type Author,
  type HistoryEntry,
  type Row,
  StoreError,
  type Wanted,
} from "../store.ts";
import { wantedDeployments, wantedRoute } from "./releases.ts";

export function idOfApp({ spec }: App): string {
  return spec?.template?.deploymentId ?? "";
}

/** Unique within a region. */
export function nameOfApp({ spec }: App): string {
  return `${spec?.template?.k8sNamespace ?? ""}/${spec?.template?.k8sName ?? ""}`;
}

export function environmentOfApp(app: App | undefined): string | undefined {
  return app?.spec?.template?.environmentId;
}

/** Whether a change would leave the app as it is, apart from its version. */
export function isSameApp(before: App | undefined, after: App): boolean {
  return before !== undefined && equals(AppSchema, before, withVersion(after, before.version));
}

export function withVersion(app: App, version: bigint): App {
  const next = clone(AppSchema, app);
  next.version = version;
  return next;
}

/** The kinds of rows that follow from an app. */
export type AppKind = "deployment" | "route";

/** A row to write, decided on its current row. */
export type RowChange<K extends AppKind = AppKind> = {
  readonly [Kind in K]: {
    readonly kind: Kind;
    readonly id: string;
    decide(row: Row<Kind> | undefined): Wanted<Kind>;
  };
}[K];

/** Calls `write` with a change and its types. */
export function writing<T>(change: RowChange, write: <K extends AppKind>(change: RowChange<K>) => T): T {
  return change.kind === "deployment" ? write<"deployment">(change) : write<"route">(change);
}

/** The rows to write, given what is desired of it now. The route comes first: it is wanted before what it leads to. */
export function rowChanges(
  appId: string,
  app: App | "removed",
  { deployments, route }: Pick<AppFacts, "deployments" | "route">,
): readonly RowChange[] {
  const rows = deployments.map(({ row }) => row);
  return [...routeChanges(appId, app, route?.row), ...deploymentChanges(appId, app, rows)];
}

function routeChanges(
  appId: string,
  app: App | "removed",
  row: Row<"route"> | undefined,
): readonly RowChange<"route">[] {
  const kind = "route";
  const spec = app === "removed" ? undefined : wantedRoute(app);
  if (spec === undefined) {
    if (row === undefined) return [];
    return [{ kind, id: row.id, decide: () => ({ spec: row.spec, desired: "stopped", appId }) }];
  }
  const content = { spec, desired: "running", appId } as const;
  if (row !== undefined && isSame(kind, row, content)) return [];
  const id = spec.routeId;
  const decide = (before: Row<"route"> | undefined) => {
    // The name of a deleted app is free.
    if (before === undefined || before.desired === "stopped" || before.appId === appId) return content;
    throw new StoreError("name_taken", `route ${id} exists and is not that of app ${appId}`);
  };
  return [{ kind, id, decide }];
}

function deploymentChanges(
  appId: string,
  app: App | "removed",
  rows: readonly Row<"deployment">[],
): readonly RowChange<"deployment">[] {
  const kind = "deployment";
  const wanted = app === "removed" ? [] : wantedDeployments(app);
  const ids = new Set(wanted.map(({ deploymentId }) => deploymentId));
  const put = wanted.flatMap((spec) => {
    const id = spec.deploymentId;
    const content = { spec, desired: "running", appId } as const;
    const row = rows.find((each) => each.id === id);
    if (row !== undefined && isSame("deployment", row, content)) return [];
    const decide = (before: Row<"deployment"> | undefined) => {
      if (before === undefined || before.appId === appId) return content;
      throw new StoreError("name_taken", `deployment ${id} exists and is not a release of app ${appId}`);
    };
    return [{ kind, id, decide } as const];
  });
  const stopped = rows.filter(({ id }) => !ids.has(id));
  return [
    ...put,
    ...stopped.map(({ id, spec }) => ({
      ...({ kind, id } as const),
      decide: () => ({ spec, desired: "stopped", appId }) as const,
    })),
  ];
}

/** The first number that no deployment of an earlier app with the same id has. */
export function firstNumber(appId: string, leftIds: readonly string[]): number {
  return 1 + Math.max(0, ...leftIds.map((id) => releaseNumber(appId, id)));
}

/** A change as history entries. */
export function appNews(before: App | undefined, after: App, author: Author): HistoryEntry[] {
  const id = idOfApp(after);
  const entry = (event: HistoryEntry["event"], outcome: string) =>
    ({ ...author, kind: "app", id, version: after.version, event, outcome }) as const;
  const isSameSpec =
    before?.spec !== undefined && after.spec !== undefined && equals(AppSpecSchema, before.spec, after.spec);
  const old = new Map(before?.releases.map((release) => [release.number, release.phase]));
  const releases = after.releases.filter(({ number, phase }) => old.get(number) !== phase);
  return [
    ...(isSameSpec ? [] : [entry("set", "")]),
    ...((before?.paused ?? false) === after.paused ? [] : [entry(after.paused ? "paused" : "resumed", "")]),
    ...releases.map((release) => entry(events[release.phase] ?? "set", releaseText(release))),
  ];
}

const events: Readonly<Record<Phase, HistoryEntry["event"]>> = {
  [Phase.UNSPECIFIED]: "set",
  [Phase.STARTING]: "release_started",
  [Phase.CURRENT]: "release_current",
  [Phase.DRAINING]: "release_draining",
  [Phase.RETIRED]: "release_ended",
  [Phase.FAILED]: "release_failed",
  [Phase.SUPERSEDED]: "release_ended",
};

function releaseText({ number, reason }: Release): string {
  return `release ${number}${reason === "" ? "" : `: ${reason}`}`;
}

export function removalOfApp(app: App, author: Author): HistoryEntry {
  return { ...author, kind: "app", id: idOfApp(app), version: app.version, event: "removed", outcome: "" };
}

export function appNameTaken(name: string, holder: string): StoreError {
  return new StoreError("name_taken", `app ${holder} already has the name ${name}`);
}

/** Throws `in_use` if one of the apps belongs to the environment. */
export function assertNoApp(environmentId: string, appId: string | undefined, refused?: string): void {
  if (appId === undefined) return;
  const what = refused === undefined ? "" : `${refused}: `;
  throw new StoreError(
    "in_use",
    `${what}app ${appId} still uses environment ${environmentId}; delete it first`,
  );
}
