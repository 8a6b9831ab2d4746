// The document kinds: one for each kind of object, built from its descriptor, App and Environment. And the manifests that
// an agent would apply for documents.
import type { Message } from "@bufbuild/protobuf";
import type { Document } from "../documents/document.ts";
import type { DocumentKind, DocumentRules } from "../documents/document-kind.ts";
import { type EnvironmentContent, environmentDocument } from "../documents/environment.ts";
import type { ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import type { KubeObject } from "../kube/types.ts";
import { describeProblems, type FieldProblem, type ParsedMessage } from "../model/field-problem.ts";
import { appRoute } from "./app-route.ts";
import type { AppContent } from "./deployment/app-document.ts";
import { releaseTemplate } from "./deployment/release-names.ts";
import type { Kind } from "./kind.ts";
import type { ObjectContent, RenderSettings } from "./kind-document.ts";
import { type ApplyMessage, allKinds, type KindName, kinds } from "./kinds.ts";

/** The content of a document that describes an object in a cluster. */
export type AnyObjectContent = { [K in KindName]: ObjectContent<K, ApplyMessage<K>> }[KindName];
/** The content of any document. */
export type AnyContent = AnyObjectContent | AppContent | EnvironmentContent;
export type AnyDocument = Document<AnyContent>;
export type AnyDocumentKind = DocumentKind<AnyContent>;

/** In the order of the documentation. */
export async function loadDocumentKinds(): Promise<readonly AnyDocumentKind[]> {
  const { appDocument } = await import("./deployment/app-document.ts");
  // Each gets only documents of its own kind, which the type of a list of all kinds cannot express.
  const app = appDocument as unknown as AnyDocumentKind;
  return [app, ...(await Promise.all(allKinds.map(documentKindOf))), environmentDocument];
}

async function documentKindOf(kind: Kind<KindName>): Promise<AnyDocumentKind> {
  const { schema, belongsTo } = await kind.loadDocument();
  const documentKind: DocumentKind<ObjectContent<KindName, Message>> = {
    ...schema,
    idOf: ({ spec }) => kind.idOf(spec),
    // If a part of the name is missing, that part is empty here.
    nameOf: ({ spec }) => kind.uniqueNameOf(spec).split("/"),
    ...(belongsTo && { belongsTo: ({ spec }) => belongsTo(spec) }),
  };
  // Each gets only documents of its own kind, which the type of a list of all kinds cannot express.
  return documentKind as unknown as AnyDocumentKind;
}

export function idOf(content: AnyContent): string {
  if (content.kind === "environment") return content.spec.id;
  if (content.kind === "app") return content.spec.template?.deploymentId ?? "";
  const kind: Kind = kinds[content.kind];
  return kind.idOf(content.spec);
}

/** What is wrong with a field of the wire, by the name that it has in documents. */
export function inDocumentWords(
  { path, message }: FieldProblem,
  kindName: AnyContent["kind"],
  kinds: readonly AnyDocumentKind[],
): FieldProblem {
  const { fields = [] } = kinds.find(({ kind }) => kind === kindName) ?? {};
  const ofWire = { path: path.replace(new RegExp(`^${kindName}\\.`), ""), message };
  const [known = ofWire] = fields.flatMap((field) => field.translate(ofWire) ?? []);
  return known;
}

/** The document for what the control plane has; undefined if a newer server wrote it. */
export function contentOfView({ spec, deploymentId }: ObjectView): AnyObjectContent | undefined {
  if (spec?.spec.case === undefined) return undefined;
  return { kind: spec.spec.case, spec: spec.spec.value, deploymentId } as AnyObjectContent;
}

/**
 * Renders manifests with the same functions as the agent, each object after those that it needs. Objects that several
 * documents share appear once: a namespace, its pull secret, and the ingress policy of an environment, which admits the
 * ports of all its deployments. Environments have no objects in a cluster, and an app has those of its first release and of its route.
 *
 * `all`: from `parseDocuments` with the same rules.
 */
export async function renderedObjects(
  all: readonly AnyDocument[],
  settings: RenderSettings,
  rules: DocumentRules,
): Promise<readonly KubeObject[]> {
  const documents = all.flatMap(objectsOf);
  const manifests = new Map<AnyDocument, readonly KubeObject[]>();
  for (const kind of allKinds) {
    const { manifestsOf } = await kind.loadDocument();
    const own = documents.flatMap((document) => (document.kind === kind.name ? [document] : []));
    const rendered = manifestsOf(
      own.map(({ spec }) => specOf(kind.parseApply(spec, rules))),
      settings,
    );
    for (const [index, document] of own.entries()) manifests.set(document, rendered[index] ?? []);
  }
  return firstOfEach(documents.flatMap((document) => manifests.get(document) ?? []));
}

/** An app has a deployment, and a route if it says who may reach it. */
function objectsOf(document: AnyDocument): readonly AnyDocument[] {
  if (document.kind !== "app") return [document];
  const first = releaseTemplate(document.spec, 1);
  const route = appRoute(document.spec, first.deploymentId, [first]);
  const deployment = { ...document, kind: "deployment", spec: first } as const;
  return route === undefined ? [deployment] : [deployment, { ...document, kind: "route", spec: route }];
}

function firstOfEach(objects: readonly KubeObject[]): readonly KubeObject[] {
  const seen = new Map<string, KubeObject>();
  for (const object of objects) {
    const { kind, metadata } = object;
    const key = `${kind} ${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
    if (!seen.has(key)) seen.set(key, object);
  }
  return [...seen.values()];
}

function specOf<T>(parsed: ParsedMessage<T>): T {
  if (parsed.kind === "valid") return parsed.spec;
  throw new TypeError(
    `a document was taken that the model does not take: ${describeProblems(parsed.problems)}`,
  );
}
