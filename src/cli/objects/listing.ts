// What `krane get` found, and how it prints that: as a table, JSON, YAML, names, documents or the values of one field.
import type { JsonValue } from "@bufbuild/protobuf";
import { documentOf } from "../../documents/document-of.ts";
import { type AnyContent, loadDocumentKinds } from "../../kinds/documents.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import { parseAge } from "../terminal/age.ts";
import { isForPrograms, renderValue } from "../terminal/output.ts";
import { type Cell, renderTable } from "../terminal/table.ts";
import { renderPath } from "./field-path.ts";

export interface Listing {
  readonly titles: readonly string[];
  readonly items: readonly ListedItem[];
  /** Said if there are no items. */
  readonly absence: string;
  /** The whole result, from the values of the items. */
  wrap(items: readonly JsonValue[]): JsonValue;
}

export interface ListedItem {
  /** As commands accept it. */
  readonly title: string;
  readonly json: JsonValue;
  readonly cells: readonly Cell[];
  /** Undefined if it cannot be applied: a pod, or it is being deleted, a release of an app, or from a newer control plane. */
  readonly content: AnyContent | undefined;
}

export interface PrintOptions {
  readonly sortBy?: string;
}

export async function printListing(
  { output, path, paint }: Pick<Admin, "output" | "path" | "paint">,
  io: Io,
  listing: Listing,
  { sortBy }: PrintOptions = {},
): Promise<void> {
  const { titles, items } = listing;
  if (items.length === 0) io.stderr.write(`${listing.absence}\n`);
  const values = items.map(({ json }) => json);
  if (isForPrograms(output)) {
    io.stdout.write(await renderValue(listing.wrap(values), output));
  } else if (output === "path") {
    io.stdout.write(renderPath(path, values));
  } else if (output === "name") {
    io.stdout.write(items.map(({ title }) => `${title}\n`).join(""));
  } else if (output === "document") {
    io.stdout.write(await renderDocuments(items));
  } else {
    const rows = sorted(
      titles,
      items.map(({ cells }) => cells),
      sortBy,
    );
    // An empty list was already reported on standard error; a header alone would be noise.
    if (rows.length > 0) io.stdout.write(renderTable(titles, rows, paint));
  }
}

/** As `krane apply -f -` accepts them. A list leaves out what cannot be applied. */
async function renderDocuments(items: readonly ListedItem[]): Promise<string> {
  const { yamlText } = await import("../../documents/yaml-text.ts");
  const kinds = await loadDocumentKinds();
  const contents = items.flatMap(({ content }) => content ?? []);
  const [only] = items;
  if (only !== undefined && items.length === 1 && contents.length === 0)
    throw new CommandError(
      "failed",
      `${only.title} cannot be applied: it is a pod, deleted, or a release of an app`,
    );
  return contents.map((content) => yamlText(documentOf(content, kinds))).join("---\n");
}

type Rows = readonly (readonly Cell[])[];

/** By the column with the title. */
function sorted(titles: readonly string[], rows: Rows, column: string | undefined): Rows {
  if (column === undefined) return rows;
  const index = titles.indexOf(column.toUpperCase());
  if (index < 0)
    throw new CommandError("usage", `no column "${printable(column)}"; there are ${titles.join(", ")}`);
  const textOf = (row: readonly Cell[]) => {
    const cell = row[index] ?? "";
    return typeof cell === "string" ? cell : cell.text;
  };
  return rows.toSorted((a, b) => compareTexts(textOf(a), textOf(b)));
}

const { compare } = new Intl.Collator("en", { numeric: true });

/** Numbers by their value, and ages by their length: 90s is more than 1m. */
export function compareTexts(a: string, b: string): number {
  const [ageA, ageB] = [parseAge(a), parseAge(b)];
  return ageA !== undefined && ageB !== undefined ? ageA - ageB : compare(a, b);
}
