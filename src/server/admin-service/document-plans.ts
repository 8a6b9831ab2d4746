// The call that says what documents would change. Each is read as the command line reads it and tried as `dry_run` tries it, so that
// a page can show every problem and every change before anything is applied. The code for documents is loaded by those who call.
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { clashesOf } from "../../documents/clashes.ts";
import { parseDocuments } from "../../documents/parse.ts";
import {
  ApplyAppRequestSchema,
  ApplyEnvironmentRequestSchema,
  ApplyObjectRequestSchema,
  ApplyObjectResponse_Change as Change,
  type DocumentProblem,
  DocumentProblemSchema,
  type ObjectSpec,
  ObjectSpecSchema,
  type PlanDocumentsRequest,
  type PlannedDocument,
  PlannedDocumentSchema,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { changesBetween } from "../../kinds/document-changes.ts";
import {
  type AnyContent,
  type AnyDocument,
  type AnyDocumentKind,
  contentOfView,
  idOf,
  inDocumentWords,
  loadDocumentKinds,
} from "../../kinds/documents.ts";
import { type Author, type Store, StoreError } from "../store.ts";
import { applyApp } from "./apps.ts";
import { badRequest, checked, problemsOfRequest } from "./bad-request.ts";
import { applyObject } from "./object-changes.ts";
import { objectView } from "./object-reads.ts";
import { parseRegion, refOf } from "./object-refs.ts";

const textCharsMax = 1024 * 1024;
/** Each costs a read of the database. */
const documentsMax = 200;

export async function planDocuments(
  store: Store,
  request: PlanDocumentsRequest,
  author: Author,
  /** Documents name their own regions. One that the caller may not read is as unknown as one that is none. */
  mayRead: (region: string) => boolean = () => true,
) {
  const region = checked((refuse) => parseRegion(request.region, refuse));
  if (request.text.length > textCharsMax)
    throw badRequest([{ path: "text", message: `has more than ${textCharsMax} characters; split it` }]);
  const kinds = await loadDocumentKinds();
  const parsed = parseDocuments([{ name: "", text: request.text }], kinds);
  if (parsed.kind === "invalid") return { problems: parsed.problems.map(problemOf) };
  const placed = parsed.documents.map((document) => ({ ...document, region: document.region ?? region }));
  const clashes = clashesOf(placed, kinds);
  if (clashes.length > 0) return { problems: clashes.map(problemOf) };
  if (placed.length > documentsMax)
    throw badRequest([{ path: "text", message: `has more than ${documentsMax} documents; split it` }]);
  const regions = (await store.regions()).filter(mayRead);
  const planned: PlannedDocument[] = [];
  const problems: DocumentProblem[] = [];
  for (const document of inOrder(placed)) {
    const refuse = (path: string, message: string) =>
      problems.push(problemOf({ line: document.source.line, path, message }));
    if (!regions.includes(document.region)) refuse("region", `${document.region} is unknown to this server`);
    else {
      const plan = await planOne(store, { document, all: placed, kinds, refuse }, author);
      if (plan !== undefined) planned.push(plan);
    }
  }
  if (problems.length > 0) return { problems: problems.toSorted((a, b) => a.line - b.line) };
  return { documents: planned };
}

type Placed = AnyDocument & { readonly region: string };

interface Planning {
  readonly document: Placed;
  readonly all: readonly Placed[];
  readonly kinds: readonly AnyDocumentKind[];
  refuse(path: string, message: string): void;
}

/** What others belong to comes first. */
function inOrder(documents: readonly Placed[]): readonly Placed[] {
  const isEnvironment = ({ kind }: Placed) => kind === "environment";
  return [...documents.filter(isEnvironment), ...documents.filter((each) => !isEnvironment(each))];
}

/** Undefined if it was refused. */
async function planOne(
  store: Store,
  planning: Planning,
  author: Author,
): Promise<PlannedDocument | undefined> {
  const { document, kinds, refuse } = planning;
  const { kind, region } = document;
  try {
    const held = await heldContent(store, document);
    const plan = await tried(store, planning, author);
    // Of what is deleted, nothing is left that could be different.
    const before = plan.change === Change.CREATED ? undefined : held;
    const fields = changesBetween(before, document, kinds).map(({ path, ...sides }) => ({
      field: path,
      ...(sides.before !== undefined && { before: sides.before }),
      ...(sides.after !== undefined && { after: sides.after }),
    }));
    return create(PlannedDocumentSchema, {
      ...plan,
      ref: refOf({ region, kind, id: idOf(document) }),
      fields,
    });
  } catch (error) {
    const rejected = problemsOfRequest(error);
    for (const each of rejected) {
      const { path, message } = inDocumentWords(each, kind, kinds);
      refuse(path, message);
    }
    if (rejected.length > 0) return undefined;
    if (!(error instanceof ConnectError) && !(error instanceof StoreError)) throw error;
    refuse("", error instanceof ConnectError ? error.rawMessage : error.message);
    return undefined;
  }
}

type Plan = Pick<PlannedDocument, "change" | "call"> &
  Partial<Pick<PlannedDocument, "release" | "forNewPodsOnly">>;

async function tried(store: Store, { document, all, refuse }: Planning, author: Author): Promise<Plan> {
  const { region } = document;
  if (document.kind === "environment") {
    const { id, workspaceId, projectId } = document.spec;
    const before = await store.environment(region, id);
    const isSame = before?.workspaceId === workspaceId && before.projectId === projectId;
    const expectedVersion = before?.version ?? 0n;
    const value = create(ApplyEnvironmentRequestSchema, { region, ...document.spec, expectedVersion });
    const change = before === undefined ? Change.CREATED : isSame ? Change.UNCHANGED : Change.CONFIGURED;
    return { change, call: { case: "environment", value } };
  }
  if (document.kind === "app") {
    const trial = create(ApplyAppRequestSchema, { region, spec: document.spec, dryRun: true });
    const { change, release } = await applyApp(store, trial, author);
    const { app } = await store.app(region, idOf(document));
    const expectedVersion = app?.version ?? 0n;
    const value = create(ApplyAppRequestSchema, { region, spec: document.spec, expectedVersion });
    return { change, release, call: { case: "app", value } };
  }
  // The cases of the protocol's oneof are named like the kinds.
  const spec = create(ObjectSpecSchema, {
    spec: { case: document.kind, value: document.spec } as ObjectSpec["spec"],
  });
  const { deploymentId = "" } = document;
  const trial = create(ApplyObjectRequestSchema, { region, spec, deploymentId, dryRun: true });
  const { change, version, forNewPodsOnly } = await applyObject(store, trial, author);
  if (document.kind === "deployment" && change === Change.CREATED) {
    const { environmentId } = document.spec;
    const isPlanned = all.some(
      (each) => each.kind === "environment" && each.region === region && idOf(each) === environmentId,
    );
    // It would run without its secrets.
    if (!isPlanned && (await store.environment(region, environmentId)) === undefined)
      refuse("environmentId", `${environmentId} does not exist; add a document of kind Environment`);
  }
  const value = create(ApplyObjectRequestSchema, { region, spec, deploymentId, expectedVersion: version });
  return { change, forNewPodsOnly, call: { case: "object", value } };
}

/** Undefined if there is nothing yet, or a newer server wrote it. */
async function heldContent(store: Store, document: Placed): Promise<AnyContent | undefined> {
  const { region, kind } = document;
  const id = idOf(document);
  if (kind === "environment") {
    const held = await store.environment(region, id);
    return held && { kind, spec: { id, workspaceId: held.workspaceId, projectId: held.projectId } };
  }
  if (kind === "app") {
    const { app } = await store.app(region, id);
    return app?.spec && { kind, spec: app.spec };
  }
  const object = await store.object(region, kind, id);
  return object && contentOfView(objectView(region, kind, object, undefined));
}

function problemOf(problem: { readonly line: number; readonly path: string; readonly message: string }) {
  const { line, path, message } = problem;
  return create(DocumentProblemSchema, { line, path, problem: message });
}
