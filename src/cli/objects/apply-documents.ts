// krane apply: sends documents to the control plane. Several documents are all checked with a dry run before the first
// is sent, so that one bad document does not leave half of them applied. Requests run concurrently, but environments
// are applied before anything that may belong to them.
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  ApplyObjectResponse_Change as Change,
  type Environment,
  FieldProblemSchema,
  type ObjectRef,
  ObjectRefSchema,
  type ObjectSpec,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type AnyObjectContent, idOf, inDocumentWords, loadDocumentKinds } from "../../kinds/documents.ts";
import { printable } from "../../telemetry/scrub.ts";
import { type Admin, flawOfCall } from "../admin/admin-access.ts";
import { type AppliedApp, waitForApps } from "../apps/app-wait.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { waitAndTell } from "./command-wait.ts";
import { createEnvironmentLists, type EnvironmentLists } from "./environment-search.ts";
import type { LoadedDocument } from "./loaded-documents.ts";
import { objectKindOf } from "./object-names.ts";
import { callsAtOnce, workInOrder } from "./ordered-work.ts";
import { sendOrders, summaryOf } from "./sent-orders.ts";

/** Documents for another control plane would all be rejected; show no more errors than fit on a screen. */
const refusalsMax = 20;

export interface ApplyOptions {
  readonly dryRun?: true;
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

interface Applied {
  readonly change: Change;
  readonly version: bigint;
  /** Undefined for an app, and for an environment, which no agent manages. */
  readonly ref?: ObjectRef;
  readonly app?: AppliedApp;
  /** Its running pods stay as they are. */
  readonly forNewPodsOnly?: boolean;
}

export async function applyDocuments(
  admin: Admin,
  io: Io,
  documents: readonly LoadedDocument[],
  options: ApplyOptions,
): Promise<number> {
  if (options.ifVersion !== undefined && documents.length > 1)
    throw new CommandError("usage", `--if-version needs exactly one document; there are ${documents.length}`);
  const [environments, others] = [
    documents.filter(({ document }) => document.kind === "environment"),
    documents.filter(({ document }) => document.kind !== "environment"),
  ];
  const ordered = [...environments, ...others];
  if (options.dryRun || documents.length > 1) {
    const trials: (() => void)[] = [];
    await checkAll(admin, ordered, options, (loaded, trial) =>
      trials.push(() => tell(io, admin, loaded, trial, true)),
    );
    // Printed only after all checks: nothing must be promised if a later document is rejected.
    if (options.dryRun) {
      for (const tellTrial of trials) tellTrial();
      return exitCodes.ok;
    }
  }
  const awaited: { ref: ObjectRef; version: bigint }[] = [];
  const apps: AppliedApp[] = [];
  const known = createKnownEnvironments(admin, environments);
  await sendOrders(admin, io, {
    verb: "apply",
    // A deployment is checked against its environment and takes its secrets, so the environment must exist first.
    waves: [environments, others],
    send: (loaded) => applyOne(admin, loaded, options, known),
    tell(loaded, applied) {
      tell(io, admin, loaded, applied, false);
      if (applied.ref !== undefined) awaited.push({ ref: applied.ref, version: applied.version });
      if (applied.app !== undefined) apps.push(applied.app);
      return true;
    },
  });
  if (options.wait && apps.length > 0) await waitForApps(admin, io, { apps, timeoutMs: options.timeout });
  if (options.wait && awaited.length > 0)
    await waitAndTell(admin, io, { goal: "ready", objects: awaited, timeoutMs: options.timeout });
  return exitCodes.ok;
}

/** Changes nothing. Rejects with all problems. */
async function checkAll(
  admin: Admin,
  documents: readonly LoadedDocument[],
  options: ApplyOptions,
  onChecked: (loaded: LoadedDocument, trial: Applied) => void,
): Promise<void> {
  const known = createKnownEnvironments(admin, documents);
  const { errors, left } = await workInOrder(documents, {
    atOnce: callsAtOnce,
    work: (loaded) => applyOne(admin, loaded, { ...options, dryRun: true }, known),
    tell: onChecked,
    goesOn: (soFar) => soFar.length < refusalsMax && soFar.every(isAboutDocument),
  });
  if (errors.length === 0) return;
  admin.signal.throwIfAborted();
  throw summaryOf(errors, left > 0 && errors.every(isAboutDocument) ? `${left} more were not checked` : "");
}

const words: Readonly<Record<Change, string>> = {
  [Change.UNSPECIFIED]: "applied",
  [Change.CREATED]: "created",
  [Change.CONFIGURED]: "configured",
  [Change.UNCHANGED]: "unchanged",
};

function tell(
  io: Io,
  { paint }: Admin,
  { title }: LoadedDocument,
  { change, version, app, forNewPodsOnly }: Applied,
  isTrial: boolean,
): void {
  const word = paint(words[change] ?? "applied", change === Change.UNCHANGED ? "faint" : "good");
  const at = app !== undefined && app.release > 0 ? `release ${app.release}` : `version ${version}`;
  io.stdout.write(isTrial ? `${title} would be ${word} (dry run)\n` : `${title} ${word} (${at})\n`);
  if (forNewPodsOnly)
    io.stderr.write(
      `${title}: its running pods stay as they are, and only new ones get the change; to replace them, use kind: App, or a new id and name\n`,
    );
}

async function applyOne(
  admin: Admin,
  loaded: LoadedDocument,
  options: ApplyOptions,
  known: KnownEnvironments,
): Promise<Applied> {
  try {
    if (options.dryRun) await requireEnvironment(admin, loaded, known);
    return await send(admin, loaded, options, known);
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const noRegion = await flawOfCall(admin, error, loaded.region);
    const flaw = noRegion ?? (await fieldFlaw(error, loaded)) ?? admin.explain(error);
    const isOfCommand = noRegion !== undefined && loaded.document.region === undefined;
    if (isOfCommand || (flaw.code !== "failed" && flaw.code !== "not_found")) throw flaw;
    const { file, line } = loaded.document.source;
    const lines = flaw.message.split("\n").map((text) => `${file}:${line}: ${loaded.title}: ${text}`);
    throw new DocumentRefusal(flaw.code, lines.join("\n"));
  }
}

interface KnownEnvironments {
  readonly listed: EnvironmentLists;
  /** Whether it exists, or is one of the documents. */
  has(region: string, id: string): Promise<boolean>;
}

function createKnownEnvironments(admin: Admin, documents: readonly LoadedDocument[]): KnownEnvironments {
  const listed = createEnvironmentLists(admin);
  const has = async (region: string, id: string) =>
    documents.some(
      (each) => each.region === region && each.document.kind === "environment" && idOf(each.document) === id,
    ) || (await listed(region)).some((each) => each.id === id);
  return { listed, has };
}

/**
 * A new deployment whose environment is missing or mistyped would run without its secrets. The control plane rejects one, but
 * not in a dry run, because only the command knows which environments its other documents create.
 */
async function requireEnvironment(
  { client, signal }: Admin,
  { document, region, title }: LoadedDocument,
  known: KnownEnvironments,
): Promise<void> {
  if (document.kind !== "deployment" || (await known.has(region, document.spec.environmentId))) return;
  const trial = { region, spec: { spec: specOf(document) }, dryRun: true };
  if ((await client.applyObject(trial, { signal })).change !== Change.CREATED) return;
  const { file, line } = document.source;
  const environment = printable(document.spec.environmentId);
  throw new DocumentRefusal(
    "failed",
    `${file}:${line}: ${title}: environment ${environment} does not exist in region ${region}; apply a document of kind Environment first`,
  );
}

/** The rejected fields by their names in documents; undefined if the error names none. */
async function fieldFlaw(
  error: ConnectError,
  { document }: LoadedDocument,
): Promise<CommandError | undefined> {
  const problems = error.findDetails(FieldProblemSchema);
  if (problems.length === 0) return undefined;
  const kinds = await loadDocumentKinds();
  const lines = problems.map(({ path, problem: message }) => {
    const known = inDocumentWords({ path, message }, document.kind, kinds);
    return printable(`${known.path} ${known.message}`);
  });
  return new CommandError("failed", lines.join("\n"));
}

/** A problem of one document, as opposed to an unreachable server, a rejected token or an unknown region. */
class DocumentRefusal extends CommandError {}

function isAboutDocument(error: unknown): boolean {
  return error instanceof DocumentRefusal;
}

async function send(
  { client, signal }: Admin,
  { document, region }: LoadedDocument,
  { dryRun = undefined, ifVersion: expectedVersion }: ApplyOptions,
  { listed }: KnownEnvironments,
): Promise<Applied> {
  const expected = expectedVersion === undefined ? {} : { expectedVersion };
  if (document.kind === "environment") {
    const before = (await listed(region)).find(({ id }) => id === document.spec.id);
    const change = environmentChange(before, document.spec);
    if (dryRun) return { change, version: before?.version ?? 0n };
    const { environment } = await client.applyEnvironment(
      { region, ...document.spec, ...expected },
      { signal },
    );
    return { change, version: environment?.version ?? 0n };
  }
  if (document.kind === "app") {
    const id = idOf(document);
    const request = { region, spec: document.spec, dryRun: dryRun === true, ...expected };
    const { app, change, release } = await client.applyApp(request, { signal });
    return { change, version: app?.version ?? 0n, app: { region, id, release } };
  }
  const request = {
    region,
    spec: { spec: specOf(document) },
    dryRun: dryRun === true,
    deploymentId: document.deploymentId ?? "",
    ...expected,
  };
  const { change, version, forNewPodsOnly } = await client.applyObject(request, { signal });
  const ref = create(ObjectRefSchema, { region, kind: objectKindOf(document.kind), id: idOf(document) });
  return { change, version, ref, forNewPodsOnly };
}

/** The cases of the protocol's oneof are named like the kinds. */
function specOf({ kind, spec }: AnyObjectContent): ObjectSpec["spec"] {
  return { case: kind, value: spec } as ObjectSpec["spec"];
}

function environmentChange(
  before: Environment | undefined,
  { workspaceId, projectId }: { readonly workspaceId: string; readonly projectId: string },
): Change {
  if (before === undefined) return Change.CREATED;
  const isSame = before.workspaceId === workspaceId && before.projectId === projectId;
  return isSame ? Change.UNCHANGED : Change.CONFIGURED;
}
