// krane apply: makes documents the desired state. Where there are several, the control plane is asked about each
// before the first is sent, so that one bad document does not leave half of them behind.
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type Document, idOf } from "../../documents/document.ts";
import {
  ApplyObjectResponse_Change as Change,
  type Environment,
  type ObjectRef,
  ObjectRefSchema,
  type ObjectSpec,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type Admin, regionFlaw } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { waitAndTell } from "./command-wait.ts";
import type { LoadedDocument } from "./loaded-documents.ts";
import { objectKindOf } from "./object-names.ts";

export interface ApplyOptions {
  readonly dryRun?: true;
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

interface Applied {
  readonly change: Change;
  readonly version: bigint;
  /** Undefined for what no agent looks after. */
  readonly ref?: ObjectRef;
}

export async function applyDocuments(
  admin: Admin,
  io: Io,
  documents: readonly LoadedDocument[],
  options: ApplyOptions,
): Promise<number> {
  if (options.ifVersion !== undefined && documents.length > 1)
    throw new CommandError(
      "usage",
      `--if-version is about one object, and there are ${documents.length} documents`,
    );
  if (options.dryRun) {
    const trials: Applied[] = [];
    for (const loaded of documents) trials.push(await applyOne(admin, loaded, options));
    // Only then: what was refused in the end must not have been promised in parts.
    for (const [index, loaded] of documents.entries()) {
      const trial = trials[index];
      if (trial !== undefined) tell(io, admin, loaded, trial, true);
    }
    return exitCodes.ok;
  }
  if (documents.length > 1)
    for (const loaded of documents) await applyOne(admin, loaded, { ...options, dryRun: true });
  const awaited: { ref: ObjectRef; version: bigint }[] = [];
  for (const loaded of documents) {
    const applied = await applyOne(admin, loaded, options);
    tell(io, admin, loaded, applied, false);
    if (applied.ref !== undefined) awaited.push({ ref: applied.ref, version: applied.version });
  }
  if (options.wait && awaited.length > 0)
    await waitAndTell(admin, io, { goal: "ready", objects: awaited, timeoutMs: options.timeout });
  return exitCodes.ok;
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
  { change, version }: Applied,
  isTrial: boolean,
): void {
  const word = paint(words[change] ?? "applied", change === Change.UNCHANGED ? "faint" : "good");
  io.stdout.write(
    isTrial ? `${title} would be ${word} (dry run)\n` : `${title} ${word} (version ${version})\n`,
  );
}

async function applyOne(admin: Admin, loaded: LoadedDocument, options: ApplyOptions): Promise<Applied> {
  try {
    return await send(admin, loaded, options);
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const { code, message } = (await regionFlaw(admin, error, loaded.region)) ?? admin.explain(error);
    const { file, line } = loaded.document.source;
    // Who cannot be reached or lets nobody in says nothing about this document.
    const isAboutIt = code === "failed" || code === "not_found";
    throw new CommandError(code, isAboutIt ? `${file}:${line}: ${loaded.title}: ${message}` : message);
  }
}

async function send(
  { client, signal }: Admin,
  { document, region }: LoadedDocument,
  { dryRun = undefined, ifVersion: expectedVersion }: ApplyOptions,
): Promise<Applied> {
  const expected = expectedVersion === undefined ? {} : { expectedVersion };
  if (document.kind === "environment") {
    const { environments } = await client.listEnvironments({ region }, { signal });
    const before = environments.find(({ id }) => id === document.spec.id);
    const change = environmentChange(before, document.spec);
    if (dryRun) return { change, version: before?.version ?? 0n };
    const { environment } = await client.applyEnvironment(
      { region, ...document.spec, ...expected },
      { signal },
    );
    return { change, version: environment?.version ?? 0n };
  }
  const request = {
    region,
    spec: { spec: specOf(document) },
    dryRun: dryRun === true,
    deploymentId: document.kind === "policy" ? document.deploymentId : "",
    ...expected,
  };
  const { change, version } = await client.applyObject(request, { signal });
  const ref = create(ObjectRefSchema, { region, kind: objectKindOf(document.kind), id: idOf(document) });
  return { change, version, ref };
}

function specOf(document: Exclude<Document, { kind: "environment" }>): ObjectSpec["spec"] {
  switch (document.kind) {
    case "deployment":
      return { case: "deployment", value: document.spec };
    case "sentinel":
      return { case: "sentinel", value: document.spec };
    case "policy":
      return { case: "policy", value: document.spec };
  }
}

function environmentChange(
  before: Environment | undefined,
  { workspaceId, projectId }: { readonly workspaceId: string; readonly projectId: string },
): Change {
  if (before === undefined) return Change.CREATED;
  const isSame = before.workspaceId === workspaceId && before.projectId === projectId;
  return isSame ? Change.UNCHANGED : Change.CONFIGURED;
}
