// The calls for apps. The values of secrets are never returned.
import { clone, create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type ApplyAppRequest,
  type AppView,
  AppViewSchema,
  ApplyObjectResponse_Change as Change,
  type DeleteAppRequest,
  type GetAppRequest,
  type ListAppsRequest,
  type PauseAppRequest,
  type ReleaseAppRequest,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type App, AppSchema, type AppSpec, AppSpecSchema } from "../../gen/krane/admin/v1/app_pb.ts";
import { parseAppSpec } from "../../kinds/deployment/app-spec.ts";
import type { Refuse } from "../../model/field-problem.ts";
import { parseId } from "../../model/message-fields.ts";
import { parsePage, tokenOf } from "../../services/page-token.ts";
import { firstNumber, idOfApp } from "../apps/app-rules.ts";
import {
  backTo,
  currentRelease,
  hasEnded,
  type Origin,
  pausedOr,
  releaseBefore,
  restarted,
  startingRelease,
  withSpec,
} from "../apps/releases.ts";
import { sightsOf } from "../apps/sights.ts";
import { checkVersion } from "../row-rules.ts";
import type { AgentReport, AppFacts, Author, ChangedApp, Store } from "../store.ts";
import { badRequest, checked } from "./bad-request.ts";
import { withHostnames } from "./hostnames.ts";
import { checkKept, checkOwner, conditionOf, environmentBlob } from "./object-changes.ts";
import { agentOf, agentView, objectView } from "./object-reads.ts";
import { parseRegion } from "./object-refs.ts";
import { secretsBlob } from "./secrets-blob.ts";

// Only the agent knows where it runs and which registries it allows.
const rules = { registries: [] };

export async function applyApp(store: Store, request: ApplyAppRequest, author: Author) {
  const { region, spec } = checked((refuse) => ({
    region: parseRegion(request.region, refuse),
    spec: parseSpec(request.spec, refuse),
  }));
  const { dryRun } = request;
  const { deploymentId: id = "", environmentId = "" } = spec.template ?? {};
  const decide = ({ app, environment, leftIds }: AppFacts): App => {
    checkVersion(app, conditionOf(request));
    if (app?.spec?.template && spec.template) checkKept("app", id, app.spec.template, spec.template);
    if (environment !== undefined && spec.template) checkOwner("app", environment, spec.template);
    // A dry run may be about documents that create the environment first.
    if (environment === undefined && !dryRun) throw noEnvironment(environmentId, region);
    const secrets = environmentBlob("deployment", environment);
    return withSpec(app, spec, { ...author, cause: "applied", secrets }, firstNumber(id, leftIds));
  };
  const changing = store.changeApp(region, id, decide, author, { dryRun, environmentId });
  const changed = await withHostnames(changing, "app.hostnames", spec.hostnames);
  const { before, after } = changed;
  return {
    ...(after && { app: shown(after) }),
    change: before === undefined ? Change.CREATED : before === after ? Change.UNCHANGED : Change.CONFIGURED,
    release: releaseStartedBy(changed),
  };
}

/** Any value if it was rejected. */
function parseSpec(spec: AppSpec | undefined, refuse: Refuse): AppSpec {
  const inApp: Refuse = (path, message) => refuse(`app.${path}`, message);
  return parseAppSpec(spec, rules, inApp);
}

function noEnvironment(id: string, region: string): ConnectError {
  const message = `no environment ${id} in region ${region}; apply a document of kind Environment first`;
  return badRequest([{ path: "app.environment_id", message }]);
}

/** 0 if it started none. */
function releaseStartedBy({ before, after }: ChangedApp): number {
  const number = (after && startingRelease(after)?.number) ?? 0;
  return number >= (before?.nextNumber ?? 1) ? number : 0;
}

export async function releaseApp(store: Store, request: ReleaseAppRequest, author: Author) {
  const { region, id } = parseAppRef(request);
  const { change } = request;
  const [agent] = change.case === "undo" ? await store.agents(region) : [];
  return changeOne(store, request, author, (app, origin, facts) => {
    if (app.paused) throw refused(`the releases of app ${id} are paused; resume them first`);
    switch (change.case) {
      case "image": {
        const spec = clone(AppSpecSchema, app.spec ?? create(AppSpecSchema));
        if (spec.template) spec.template.image = change.value;
        checked((refuse) => parseSpec(spec, refuse));
        return withSpec(app, spec, { ...origin, cause: "image" });
      }
      case "restart":
        return restarted(app, { ...origin, cause: "restart" });
      case "undo": {
        const { number } = change.value;
        const target = releaseBefore(app, number);
        const which = number === 0 ? "no earlier release" : `no release ${number}`;
        if (target === undefined) throw refused(`app ${id} in region ${region} has ${which} to go back to`);
        const sight = sightsOf(facts, agent, author.atMs)(target);
        return backTo(app, target, { ...origin, cause: `undo to ${target.number}` }, sight);
      }
      default:
        throw badRequest([{ path: "change", message: "is required" }]);
    }
  });
}

export async function pauseApp(store: Store, request: PauseAppRequest, author: Author) {
  return changeOne(store, request, author, (app, origin) =>
    pausedOr(app, request.paused, { ...origin, cause: "resumed" }),
  );
}

interface OneApp {
  readonly region: string;
  readonly id: string;
  readonly expectedVersion?: bigint | undefined;
}

/** Changes an app that exists. */
async function changeOne(
  store: Store,
  request: OneApp,
  author: Author,
  change: (app: App, origin: Omit<Origin, "cause">, facts: AppFacts) => App,
) {
  const { region, id } = parseAppRef(request);
  const decide = (facts: AppFacts): App => {
    const { app, environment } = facts;
    if (app === undefined) throw noApp(id, region);
    checkVersion(app, conditionOf(request));
    return change(app, { ...author, secrets: environmentBlob("deployment", environment) }, facts);
  };
  const changed = await store.changeApp(region, id, decide, author);
  return {
    ...(changed.after && { app: shown(changed.after) }),
    release: releaseStartedBy(changed),
    returnedTo: returnedTo(changed),
  };
}

/** The release that the change made current again; 0 if none. */
function returnedTo({ before, after }: ChangedApp): number {
  const number = (after && currentRelease(after)?.number) ?? 0;
  return before !== undefined && currentRelease(before)?.number === number ? 0 : number;
}

function refused(message: string): ConnectError {
  return new ConnectError(message, Code.FailedPrecondition);
}

export async function deleteApp(store: Store, request: DeleteAppRequest, author: Author) {
  const { region, id } = parseAppRef(request);
  const decide = ({ app }: AppFacts) => {
    if (app === undefined) throw noApp(id, region);
    checkVersion(app, conditionOf(request));
    return "removed" as const;
  };
  const { stopped } = await store.changeApp(region, id, decide, author);
  return { deployments: stopped.map((row) => ({ id: row.id, version: row.version })) };
}

export async function getApp(store: Store, request: GetAppRequest) {
  const { region, id } = parseAppRef(request);
  const facts = await store.app(region, id);
  if (facts.app === undefined) throw noApp(id, region);
  const agent = await agentOf(store, region);
  return {
    app: appView(region, facts, facts.app, agent?.known),
    ...(agent !== undefined && { agent: agentView(agent) }),
  };
}

function parseAppRef(request: { readonly region: string; readonly id: string }) {
  return checked((refuse) => ({
    region: parseRegion(request.region, refuse),
    id: parseId("id", request.id, refuse),
  }));
}

/** An app may have some megabytes of specs and secrets. */
const batchMax = 10;
/** Limits the size of a page; a page has at least one app. */
const pageBytesMax = 4 * 1024 * 1024;

export async function listApps(store: Store, request: ListAppsRequest, signal: AbortSignal) {
  const region = checked((refuse) => parseRegion(request.region, refuse));
  const { after, size } = parsePage(request);
  const agent = (await agentOf(store, region))?.known;
  const apps: AppView[] = [];
  let bytes = 0;
  for (let cursor = after?.key ?? ""; ; ) {
    signal.throwIfAborted();
    const batch = await store.apps(region, cursor, batchMax);
    for (const facts of batch) {
      if (facts.app === undefined) continue;
      const view = appView(region, facts, facts.app, agent);
      const viewBytes = toBinary(AppViewSchema, view).length;
      if (apps.length > 0 && (apps.length === size || bytes + viewBytes > pageBytesMax)) {
        return { apps, nextPageToken: tokenOf({ controller: "", key: cursor }) };
      }
      apps.push(view);
      bytes += viewBytes;
      cursor = idOfApp(facts.app);
    }
    if (batch.length < batchMax) return { apps, nextPageToken: "" };
  }
}

function appView(region: string, facts: AppFacts, app: App, agent: AgentReport | undefined): AppView {
  const secrets = secretsBlob(facts.environment?.secrets ?? new Map());
  return create(AppViewSchema, {
    app: shown(app, secrets),
    deployments: facts.deployments.map((object) => objectView(region, "deployment", object, agent)),
    ...(facts.route && { route: objectView(region, "route", facts.route, agent) }),
  });
}

/** Without the values of secrets. With `secrets`, releases that have others are marked. */
function shown(app: App, secrets?: Uint8Array): App {
  const view = clone(AppSchema, app);
  for (const release of view.releases) {
    const { template } = release;
    if (template === undefined) continue;
    const own = template.encryptedEnvironmentVariables;
    release.olderSecrets = secrets !== undefined && !hasEnded(release) && Buffer.compare(own, secrets) !== 0;
    template.encryptedEnvironmentVariables = new Uint8Array();
  }
  return view;
}

function noApp(id: string, region: string): ConnectError {
  return new ConnectError(`no app ${id} in region ${region}`, Code.NotFound);
}
