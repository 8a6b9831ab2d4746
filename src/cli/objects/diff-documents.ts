// krane diff: shows what an apply of the documents would change; the exit code tells whether anything would.
import { ObjectView_Desired as Desired } from "../../gen/krane/admin/v1/admin_pb.ts";
import { changesBetween, contentOfEnvironment, type FieldChange } from "../../kinds/document-changes.ts";
import { contentOfView, idOf, loadDocumentKinds } from "../../kinds/documents.ts";
import { printable } from "../../telemetry/scrub.ts";
import { type Admin, flawOfCall } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { createEnvironmentLists, type EnvironmentLists } from "./environment-search.ts";
import type { LoadedDocument } from "./loaded-documents.ts";
import { objectKindOf } from "./object-names.ts";
import { isNotFound } from "./object-search.ts";
import { callsAtOnce, workInOrder } from "./ordered-work.ts";

export async function diffDocuments(
  admin: Admin,
  io: Io,
  documents: readonly LoadedDocument[],
): Promise<number> {
  let exitCode: number = exitCodes.ok;
  const kinds = await loadDocumentKinds();
  const environments = createEnvironmentLists(admin);
  const { errors } = await workInOrder(documents, {
    atOnce: callsAtOnce,
    async work(loaded) {
      try {
        const held = await heldContent(admin, loaded, environments);
        const changes = changesBetween(held, loaded.document, kinds);
        const isSame = held !== undefined && changes.length === 0;
        return { held, changes, release: isSame ? await releaseAgain(admin, loaded) : 0 };
      } catch (error) {
        throw (await flawOfCall(admin, error, loaded.region)) ?? error;
      }
    },
    tell(loaded, { held, changes, release }) {
      if (held !== undefined && changes.length === 0 && release === 0) return;
      exitCode = exitCodes.different;
      const note =
        held === undefined
          ? ` does not exist in ${loaded.region}; apply would create it`
          : release > 0
            ? ` is unchanged, but its newest release failed; apply would start release ${release}`
            : "";
      io.stdout.write(`${admin.paint(loaded.title, "strong")}${note}\n`);
      for (const change of changes) io.stdout.write(renderChange(change, held !== undefined, admin));
    },
    goesOn: () => false,
  });
  if (errors.length > 0) throw errors[0];
  return exitCode;
}

function renderChange({ path, before, after }: FieldChange, isThere: boolean, { paint }: Admin): string {
  const text = (value: string) => printable(value);
  const name = `  ${printable(path)}: `;
  // For a new object every field is new; the line above already says so.
  const from = isThere ? "none → " : "";
  if (before === undefined) return `${name}${from}${paint(text(after ?? ""), "good")}\n`;
  if (after === undefined) return `${name}${paint(text(before), "bad")} → (removed)\n`;
  return `${name}${paint(text(before), "bad")} → ${paint(text(after), "good")}\n`;
}

/** The release that an apply of an unchanged app would start, because its last one failed; 0 if none. */
async function releaseAgain(
  { client, signal }: Admin,
  { document, region }: LoadedDocument,
): Promise<number> {
  if (document.kind !== "app") return 0;
  const { release } = await client.applyApp({ region, spec: document.spec, dryRun: true }, { signal });
  return release;
}

async function heldContent(
  { client, signal }: Admin,
  { document, region, title }: LoadedDocument,
  environments: EnvironmentLists,
) {
  const id = idOf(document);
  if (document.kind === "environment") {
    const environment = (await environments(region)).find((each) => each.id === id);
    return environment && contentOfEnvironment(environment);
  }
  try {
    if (document.kind === "app") {
      const { app } = (await client.getApp({ region, id }, { signal })).app ?? {};
      return app?.spec && ({ kind: "app", spec: app.spec } as const);
    }
    const ref = { region, kind: objectKindOf(document.kind), id };
    const { object } = await client.getObject({ ref }, { signal });
    // A deleted object would be created again.
    if (object === undefined || object.desired === Desired.STOPPED) return undefined;
    const content = contentOfView(object);
    if (content !== undefined) return content;
    throw new CommandError("failed", `${title}: written by a newer control plane; this krane cannot read it`);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
