// krane edit: opens the document of an object in an editor, and applies what was changed.
import { documentOf } from "../../documents/document-of.ts";
import { parseDocuments } from "../../documents/parse.ts";
import { renderDocumentProblems } from "../../documents/problem.ts";
import { yamlText } from "../../documents/yaml-text.ts";
import { ObjectView_Desired as Desired } from "../../gen/krane/admin/v1/admin_pb.ts";
import { changesBetween, contentOfEnvironment } from "../../kinds/document-changes.ts";
import {
  type AnyContent,
  type AnyDocument,
  contentOfView,
  idOf,
  loadDocumentKinds,
} from "../../kinds/documents.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { findApp } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { EditedFile, Io } from "../io.ts";
import { type ApplyOptions, applyDocuments } from "./apply-documents.ts";
import { findEnvironment } from "./environment-search.ts";
import { resolveName } from "./named-object.ts";
import { type NamedKind, objectKindOf } from "./object-names.ts";
import { findObject, titleOf } from "./object-search.ts";

interface Edited {
  readonly title: string;
  readonly id: string;
  readonly version: bigint;
  readonly content: AnyContent;
}

export async function editObject(
  admin: Admin,
  io: Io,
  what: { readonly kind: string; readonly name: string | undefined },
  options: Pick<ApplyOptions, "wait" | "timeout"> & { readonly editor: string | undefined },
): Promise<number> {
  const { kind, name } = await resolveName(admin, { first: what.kind, second: what.name });
  if (name === undefined) throw new CommandError("usage", `which ${kind}? krane edit ${kind} ID`);
  if (io.openEditor === undefined) throw new TypeError("no editor to open");
  // An editor that was chosen may be a script.
  if (options.editor === undefined && !io.stdout.isTerminal)
    throw new CommandError(
      "usage",
      "no terminal for an editor; set KRANE_EDITOR, or use krane get -o document and krane apply",
    );
  const opened = await load(admin, kind, name);
  const file = await io.openEditor(`${kind}.yaml`, options.editor ?? "vi");
  let isKept = false;
  try {
    const document = await edited(admin, opened, file);
    if (document === undefined) {
      io.stderr.write(`${opened.title} was not changed\n`);
      return exitCodes.ok;
    }
    isKept = true;
    // A version alone says too little: that of an app also grows while it releases.
    const now = await load(admin, kind, opened.id);
    if (changesBetween(opened.content, now.content, await loadDocumentKinds()).length > 0)
      throw new CommandError("failed", `${opened.title} was changed by somebody else meanwhile`);
    const loaded = { document, region: admin.region, title: opened.title };
    const code = await applyDocuments(admin, io, [loaded], { ...options, ifVersion: now.version });
    isKept = false;
    return code;
  } catch (error) {
    if (!isKept || !(error instanceof CommandError)) throw error;
    throw new CommandError(error.code, `${error.message}\nyour changes are in ${file.path}`);
  } finally {
    if (!isKept) await file.discard();
  }
}

async function load(admin: Admin, kind: NamedKind, name: string): Promise<Edited> {
  if (kind === "environment") {
    const environment = await findEnvironment(admin, name);
    const { id, version } = environment;
    return { title: `environment/${printable(id)}`, id, version, content: contentOfEnvironment(environment) };
  }
  if (kind === "app") {
    const { id, view } = await findApp(admin, name);
    const { spec, version = 0n } = view.app ?? {};
    if (spec === undefined) throw new CommandError("failed", "the control plane's response has no app");
    return { title: `app/${printable(id)}`, id, version, content: { kind, spec } };
  }
  const { object } = await findObject(admin, name, objectKindOf(kind));
  const title = titleOf(object.ref);
  const content = object.desired === Desired.STOPPED ? undefined : contentOfView(object);
  if (object.appId !== "")
    throw new CommandError(
      "failed",
      `${title} is a release; edit its app: krane edit app/${printable(object.appId)}`,
    );
  if (content === undefined)
    throw new CommandError("failed", `${title} is deleted, or written by a newer control plane`);
  return { title, id: object.ref?.id ?? name, version: object.version, content };
}

/** Opens the editor until the document is valid; undefined if it says the same as before, or is left as it was. */
async function edited(admin: Admin, opened: Edited, file: EditedFile): Promise<AnyDocument | undefined> {
  const kinds = await loadDocumentKinds();
  const about = `# ${opened.title} in region ${admin.region}. Save it to apply it, or leave it as it is.\n`;
  let text = yamlText(documentOf(opened.content, kinds));
  let problems = "";
  for (;;) {
    const shown = `${about}${commented(problems)}${text}`;
    const written = await file.edit(shown, admin.signal);
    if (written === shown) return undefined;
    // What was written above the document is not part of it.
    text = written.replace(/^(#.*\n)*/, "");
    if (text.trim() === "") return undefined;
    const parsed = parseDocuments([{ name: "", text }], kinds);
    problems =
      parsed.kind === "invalid"
        ? renderDocumentProblems(parsed.problems)
        : flawOf(parsed.documents, opened, admin);
    if (parsed.kind === "invalid" || problems !== "") continue;
    const [document] = parsed.documents;
    if (document === undefined || changesBetween(opened.content, document, kinds).length === 0)
      return undefined;
    return document;
  }
}

function flawOf(documents: readonly AnyDocument[], { content, id }: Edited, { region }: Admin): string {
  const [document, ...others] = documents;
  if (document === undefined || others.length > 0) return "there must be exactly one document";
  if (document.kind !== content.kind || idOf(document) !== id)
    return `kind and id must stay ${content.kind} and ${id}`;
  if (document.region !== undefined && document.region !== region) return `the region must stay ${region}`;
  return "";
}

function commented(problems: string): string {
  return problems
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => `# Rejected: ${printable(line).replace(/^:/, "line ")}\n`)
    .join("");
}
