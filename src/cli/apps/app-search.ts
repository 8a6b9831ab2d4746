// Finds an app by id or name, and lists all apps of a region across pages.
import type { AppView, GetAppResponse } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { isNotFound } from "../objects/object-search.ts";

const pageSize = 500;
// Half a million: more than a region can have; stops at a server that never ends its list.
const pagesMax = 1_000;
const suggestedMax = 5;

/** Sorted by id. */
export async function listApps({ client, signal }: Admin, region: string): Promise<readonly AppView[]> {
  const apps: AppView[] = [];
  let pageToken = "";
  for (let page = 0; page < pagesMax; page++) {
    const answer = await client.listApps({ region, pageSize, pageToken }, { signal });
    apps.push(...answer.apps);
    pageToken = answer.nextPageToken;
    if (pageToken === "") return apps;
  }
  throw new CommandError("failed", `the control plane lists more than ${pagesMax} pages of apps`);
}

export interface FoundApp {
  readonly id: string;
  readonly view: AppView;
  readonly agent: GetAppResponse["agent"];
  /** Whether it was named by id, or by namespace and name. */
  readonly isExact: boolean;
}

/** The app with that id, or else the only one that is called `namespace/name` or `name`. */
export async function findApp(admin: Admin, name: string): Promise<FoundApp> {
  const { region } = admin;
  // No id has a slash.
  if (!name.includes("/")) {
    try {
      return { ...(await getApp(admin, name)), isExact: true };
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  const apps = await listApps(admin, region);
  const matching = apps.filter((view) => nameOf(view) === name || nameOf(view).endsWith(`/${name}`));
  const [only, ...others] = matching;
  if (only === undefined) throw notFound(name, region, apps);
  if (others.length > 0) {
    const list = matching.slice(0, suggestedMax).map((view) => `app/${printable(idOf(view))}`);
    throw new CommandError("usage", `${printable(name)} is ambiguous: ${list.join(", ")}; use the id`);
  }
  return { ...(await getApp(admin, idOf(only))), isExact: nameOf(only) === name };
}

async function getApp({ client, region, signal }: Admin, id: string) {
  const { app: view, agent } = await client.getApp({ region, id }, { signal });
  if (view === undefined) throw new CommandError("failed", "the control plane's response has no app");
  return { id: idOf(view), view, agent };
}

export function idOf({ app }: AppView): string {
  return app?.spec?.template?.deploymentId ?? "";
}

/** As `namespace/name`. */
export function nameOf({ app }: AppView): string {
  return `${app?.spec?.template?.k8sNamespace ?? ""}/${app?.spec?.template?.k8sName ?? ""}`;
}

function notFound(name: string, region: string, apps: readonly AppView[]): CommandError {
  const some = apps.slice(0, suggestedMax).map((view) => `app/${printable(idOf(view))}`);
  const more = apps.length > some.length ? ` and ${apps.length - some.length} more` : "";
  const there = some.length === 0 ? "the region has none" : `there are ${some.join(", ")}${more}`;
  return new CommandError("not_found", `no app ${printable(name)} in region ${region}; ${there}`);
}
