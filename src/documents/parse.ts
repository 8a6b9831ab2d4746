// Parses files to documents, or to the list of all their problems, each with file, line and field. Rejects what the
// agent would reject later.
import { nearestName } from "../config/nearest-key.ts";
import { quote, type Refuse } from "../model/field-problem.ts";
import { clashesOf } from "./clashes.ts";
import type { Document, DocumentContent, DocumentSource } from "./document.ts";
import { apiVersion, type DocumentKind, type DocumentRules } from "./document-kind.ts";
import { text } from "./formats.ts";
import type { DocumentProblem } from "./problem.ts";
import { lineOf, type SourceMap, type SourceNode, wordOf } from "./source-tree.ts";
import { readYamlTrees, splitRemedy } from "./yaml-trees.ts";

export interface DocumentFile {
  /** As shown to users. */
  readonly name: string;
  readonly text: string;
}

export type ParsedDocuments<D extends DocumentContent> =
  | { readonly kind: "valid"; readonly documents: readonly Document<D>[] }
  | { readonly kind: "invalid"; readonly problems: readonly DocumentProblem[] };

/** The most that a command reads from one file. */
export const fileCharsMax = 4 * 1024 * 1024;

// A file that is not meant for krane could have a problem in every line.
const problemsMax = 100;

export function parseDocuments<D extends DocumentContent>(
  files: readonly DocumentFile[],
  kinds: readonly DocumentKind<D>[],
  rules: DocumentRules = { registries: [] },
): ParsedDocuments<D> {
  const read: ReadContent<D> = (tree, kind, refuse) => kind.read(tree, rules, refuse);
  const { parsed, problems, report } = parseFiles(files, { kinds, read });
  const documents = parsed.map(({ document }) => document);
  clashesOf(documents, kinds).forEach(report);
  if (problems.length > 0) return { kind: "invalid", problems: inReadingOrder(problems, files) };
  return { kind: "valid", documents };
}

/** The kind, id and region of a document, without its spec. */
export interface DocumentName<Kind extends string> {
  readonly kind: Kind;
  readonly id: string;
  readonly region?: string;
  readonly source: DocumentSource;
}

export type ParsedNames<Kind extends string> =
  | { readonly kind: "valid"; readonly names: readonly DocumentName<Kind>[] }
  | { readonly kind: "invalid"; readonly problems: readonly DocumentProblem[] };

/**
 * For callers that need only names, such as a deletion: wrong, missing or conflicting values are ignored. Unknown
 * fields are still rejected, because one may be a mistyped region.
 */
export function parseDocumentNames<D extends DocumentContent>(
  files: readonly DocumentFile[],
  kinds: readonly DocumentKind<D>[],
): ParsedNames<D["kind"]> {
  const read: ReadContent<D> = (tree, kind, refuse) =>
    kind.read(tree, { registries: [] }, (path, message) => {
      const [name] = path.split(/[.[]/, 1);
      if (name === "id" || !kind.fields.some((field) => field.name === name)) refuse(path, message);
    });
  const { parsed, problems } = parseFiles(files, { kinds, read });
  if (problems.length > 0) return { kind: "invalid", problems: inReadingOrder(problems, files) };
  const names = parsed.map(({ document, kind: { kind, idOf } }) => {
    const { region, source } = document;
    return { kind, id: idOf(document), ...(region !== undefined && { region }), source };
  });
  return { kind: "valid", names };
}

type ReadContent<D extends DocumentContent> = (tree: SourceMap, kind: DocumentKind<D>, refuse: Refuse) => D;

interface Reader<D extends DocumentContent> {
  readonly kinds: readonly DocumentKind<D>[];
  readonly read: ReadContent<D>;
}

interface Parsed<D extends DocumentContent> {
  readonly document: Document<D>;
  readonly kind: DocumentKind<D>;
}

function parseFiles<D extends DocumentContent>(files: readonly DocumentFile[], reader: Reader<D>) {
  const problems: DocumentProblem[] = [];
  const report = (problem: DocumentProblem) => {
    if (problems.length < problemsMax) problems.push(problem);
  };
  const parsed = files.flatMap((file) => parseFile(file, reader, report));
  return { parsed, problems, report };
}

/** Problems are found kind by kind, but users read a file from top to bottom. */
function inReadingOrder(
  problems: readonly DocumentProblem[],
  files: readonly DocumentFile[],
): readonly DocumentProblem[] {
  const places = new Map(files.map(({ name }, place) => [name, place]));
  const placeOf = ({ file }: DocumentProblem) => places.get(file) ?? 0;
  return problems.toSorted((one, other) => placeOf(one) - placeOf(other) || one.line - other.line);
}

type Report = (problem: DocumentProblem) => void;

function parseFile<D extends DocumentContent>(
  file: DocumentFile,
  reader: Reader<D>,
  report: Report,
): readonly Parsed<D>[] {
  const atLine = (line: number, message: string) => report({ file: file.name, line, path: "", message });
  if (file.text.length > fileCharsMax) {
    atLine(1, `is longer than ${fileCharsMax} characters; ${splitRemedy}`);
    return [];
  }
  // The replacement character for bytes that are not UTF-8. It would silently end up in a name or an argument.
  const strangerAt = file.text.indexOf("\ufffd");
  if (strangerAt >= 0) {
    const line = file.text.slice(0, strangerAt).split("\n").length;
    atLine(
      line,
      "has a character that is not UTF-8; save the file as UTF-8, or write \\ufffd where U+FFFD is meant",
    );
    return [];
  }
  const { trees, problems } = readYamlTrees(file.text);
  for (const { line, message } of problems) atLine(line, message);
  if (trees.length === 0 && problems.length === 0) atLine(1, "holds no document");
  return trees.flatMap((tree) => parseTree(tree, file.name, reader, report));
}

function parseTree<D extends DocumentContent>(
  tree: SourceNode,
  file: string,
  { kinds, read }: Reader<D>,
  report: Report,
): readonly Parsed<D>[] {
  const refuse = (path: string, message: string) => report({ file, line: lineOf(tree, path), path, message });
  if (tree.kind !== "map") {
    refuse("", `the document must be a mapping, but is ${wordOf(tree)}`);
    return [];
  }
  const kind = parseKind(tree, kinds, refuse);
  // Without a known kind, the fields cannot be checked.
  if (kind === undefined) return [];
  const region = parseRegion(tree, refuse);
  const content = read(tree, kind, refuse);
  const source = { file, line: tree.line };
  return [{ kind, document: { ...content, ...(region !== undefined && { region }), source } }];
}

function parseRegion(map: SourceMap, refuse: Refuse): string | undefined {
  const node = map.entries.get("region")?.node;
  if (node === undefined) return undefined;
  if (node.kind === "scalar" && node.value === "") refuse("region", "must not be empty");
  return text.read(node, "region", refuse);
}

/** At the top of what `krane get -o json` and `-o yaml` print. */
const resultKeys = ["objects", "apps", "app", "environments", "pods", "ref"];

function parseKind<K extends Pick<DocumentKind, "word">>(
  map: SourceMap,
  kinds: readonly K[],
  refuse: Refuse,
): K | undefined {
  const scalarOf = (name: string) => {
    const node = map.entries.get(name)?.node;
    return node?.kind === "scalar" ? node.value : node;
  };
  const version = scalarOf("apiVersion");
  if (version === undefined && resultKeys.some((key) => map.entries.has(key))) {
    refuse("", "is a result of krane get; krane get -o document prints documents that can be applied");
    return undefined;
  }
  if (version !== apiVersion) {
    // krane's documents have no metadata.
    const hint = map.entries.has("metadata") ? "; Kubernetes manifests are for kubectl" : "";
    refuse("apiVersion", `must be ${apiVersion}${wasInstead(version)}${hint}`);
  }
  const word = scalarOf("kind");
  const kind = kinds.find((each) => each.word === word);
  if (kind !== undefined) return version === apiVersion ? kind : undefined;
  const words = kinds.map((each) => each.word);
  const near =
    typeof word === "string"
      ? nearestName(
          word,
          words.map((name) => ({ name })),
        )
      : undefined;
  const remedy = near === undefined ? "" : `; did you mean ${near}?`;
  refuse("kind", `must be ${words.slice(0, -1).join(", ")} or ${words.at(-1)}${wasInstead(word)}${remedy}`);
  return undefined;
}

function wasInstead(value: unknown): string {
  if (value === undefined) return ", but is absent";
  return typeof value === "string" ? `, but is ${quote(value)}` : ", but is no text";
}
