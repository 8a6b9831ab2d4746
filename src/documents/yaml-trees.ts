// Parses YAML text, which includes JSON, to one tree per document.
//
// - Everything in YAML that JSON lacks is rejected, except for anchors: tags, keys that are not text, infinite numbers,
//   duplicate keys. A person and the program could read such a file differently.
// - Nodes that an alias repeats are shared, but counted as if they were copied. So a few lines that expand to millions
//   are rejected at no cost.
// - Lexemes are counted before they are parsed, because reporting an error for each of a million takes seconds.
// - Nesting is measured before the library builds anything: it recurses, and a few thousand levels would crash the
//   process.
// - Documents are read one at a time, so that a file of thousands takes no more memory than its trees.
import {
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  type Scalar,
} from "yaml";
import { quote } from "../model/field-problem.ts";
import type { SourceEntry, SourceNode } from "./source-tree.ts";

export const levelsMax = 64;
export const partsMax = 200_000;
// Per document, which may be a long policy. If all are wrong, each takes up to 10 µs: two seconds in total.
export const lexemesMax = 200_000;
// Enough for more than six thousand deployments in one file, with every field set.
const fileLexemesMax = 1_000_000;

// One mistake can make everything after it invalid, and a message may quote a whole line.
const mistakesMax = 5;
const messageCharsMax = 200;
/** Parsing stops after this many: more would not help the user. */
const problemsMax = 100;

/** What to do about a file that is too large. */
export const splitRemedy = "split it into several files, and give them all to -f, or the folder they are in";

export interface TextProblem {
  readonly line: number;
  readonly message: string;
}

export interface YamlTrees {
  /** In order, without empty documents. */
  readonly trees: readonly SourceNode[];
  readonly problems: readonly TextProblem[];
}

export function readYamlTrees(text: string): YamlTrees {
  const lines = new LineCounter();
  const lineAt = (offset: number) => Math.max(1, lines.linePos(offset).line);
  const trees: SourceNode[] = [];
  const problems: TextProblem[] = [];
  const composer = new Composer(composerOptions);
  const read = (document: ParsedDocument) => readDocument(document, lineAt, trees, problems);
  for (const part of partsOf(text, lines)) {
    if (part.kind === "too_much")
      return { trees: [], problems: [{ line: lineAt(part.offset), message: part.message }] };
    const deepAt = offsetOfTooDeep(part.token);
    if (deepAt !== undefined) {
      const message = `is nested deeper than ${levelsMax} levels`;
      return { trees: [], problems: [{ line: lineAt(deepAt), message }] };
    }
    for (const document of composer.next(part.token)) read(document);
    if (problems.length >= problemsMax) return { trees, problems };
  }
  for (const document of composer.end(false, text.length)) read(document);
  return { trees, problems };
}

const composerOptions = {
  schema: "core",
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: "silent",
} as const;

type ParsedDocument = Document.Parsed;

function readDocument(
  document: ParsedDocument,
  lineAt: (offset: number) => number,
  trees: SourceNode[],
  problems: TextProblem[],
): void {
  const mistakes = [...document.errors, ...document.warnings].slice(0, mistakesMax);
  for (const { pos, message } of mistakes)
    problems.push({
      line: lineAt(pos[0]),
      message: `is not valid YAML: ${message.slice(0, messageCharsMax)}`,
    });
  // The tree of a document with syntax errors is a guess, so further problems in it would be too.
  if (mistakes.length > 0) return;
  const builder = new TreeBuilder(lineAt, (line, message) => problems.push({ line, message }));
  const tree = builder.build(document.contents);
  if (tree.kind !== "scalar" || tree.value !== null) trees.push(tree);
}

type TextPart =
  | { readonly kind: "token"; readonly token: CST.Token }
  | { readonly kind: "too_much"; readonly offset: number; readonly message: string };

/** Yields a token for each document and for what is between them. Stops if there is too much. */
function* partsOf(text: string, lines: LineCounter): Generator<TextPart> {
  const parser = new Parser(lines.addNewLine);
  let count = 0;
  let countBefore = 0;
  let offset = 0;
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    count += 1;
    if (count > fileLexemesMax) {
      const message = `has more than ${fileLexemesMax} signs and words; ${splitRemedy}`;
      yield { kind: "too_much", offset: 0, message };
      return;
    }
    if (count - countBefore > lexemesMax) {
      const message = `has more than ${lexemesMax} signs and words in one document`;
      yield { kind: "too_much", offset, message };
      return;
    }
    for (const token of parser.next(lexeme)) {
      if (token.type === "document") [countBefore, offset] = [count, parser.offset];
      yield { kind: "token", token };
    }
  }
  for (const token of parser.end()) yield { kind: "token", token };
}

function offsetOfTooDeep(whole: CST.Token): number | undefined {
  const waiting: { token: CST.Token | CST.CollectionItem; levels: number }[] = [{ token: whole, levels: 0 }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { token } = next;
    const levels = next.levels + ("items" in token ? 1 : 0);
    if (levels > levelsMax && "offset" in token) return token.offset;
    const inner = [
      ...("items" in token ? token.items : []),
      ...("key" in token && token.key ? [token.key] : []),
      ...("value" in token && token.value ? [token.value] : []),
    ];
    for (const each of inner) waiting.push({ token: each, levels });
  }
  return undefined;
}

class TreeBuilder {
  private readonly lineAt: (offset: number) => number;
  private readonly refuse: (line: number, message: string) => void;
  /** Holds complete nodes only: an alias inside its own anchor is not found, so there are no cycles. */
  private readonly anchors = new Map<string, SourceNode>();
  private isTooLarge = false;

  constructor(lineAt: (offset: number) => number, refuse: (line: number, message: string) => void) {
    this.lineAt = lineAt;
    this.refuse = refuse;
  }

  build(node: unknown, lineBefore = 1): SourceNode {
    const line = this.lineOf(node, lineBefore);
    if (isAlias(node))
      return this.anchors.get(node.source) ?? this.refused(line, "has an alias without its anchor before it");
    if (!isMap(node) && !isSeq(node) && !isScalar(node)) return nothing(line);
    if (node.tag !== undefined) return this.refused(line, "has a tag; only plain YAML is taken");
    const built = isScalar(node)
      ? this.scalar(node, line)
      : isSeq(node)
        ? this.list(node.items, line)
        : this.map(node.items, line);
    if (node.anchor !== undefined) this.anchors.set(node.anchor, built);
    return built;
  }

  private scalar(node: Scalar, line: number): SourceNode {
    const { value, source } = node;
    const text = source ?? String(value);
    if (typeof value === "number" && !Number.isFinite(value))
      return this.refused(line, "has a number without end");
    if (typeof value === "string" && /\p{Surrogate}/u.test(value))
      return this.refused(line, "has text that is not valid Unicode");
    if (value === null || ["string", "number", "boolean"].includes(typeof value)) {
      return { kind: "scalar", line, size: 1, value: value as string | number | boolean | null, text };
    }
    return this.refused(line, "has a value that is neither text nor a number");
  }

  private list(items: readonly unknown[], line: number): SourceNode {
    const built = items.map((item) => this.build(item, line));
    return this.measured({ kind: "list", line, size: sizeOf(built), items: built });
  }

  private map(
    pairs: readonly { readonly key: unknown; readonly value: unknown }[],
    line: number,
  ): SourceNode {
    const entries = new Map<string, SourceEntry>();
    for (const { key, value } of pairs) {
      const keyLine = this.lineOf(key, line);
      const node = this.build(value, keyLine);
      if (!isScalar(key) || typeof key.value !== "string" || key.tag !== undefined) {
        this.refuse(keyLine, "has a key that is no text; put it into quotes");
      } else if (entries.has(key.value)) {
        const first = entries.get(key.value)?.line;
        this.refuse(keyLine, `has ${quote(key.value)} twice; it stands in line ${first} already`);
      } else entries.set(key.value, { line: keyLine, node });
    }
    return this.measured({
      kind: "map",
      line,
      size: sizeOf([...entries.values()].map(({ node }) => node)),
      entries,
    });
  }

  private measured(node: SourceNode): SourceNode {
    if (node.size <= partsMax) return node;
    if (!this.isTooLarge)
      this.refuse(node.line, `has more than ${partsMax} parts with its aliases written out`);
    this.isTooLarge = true;
    return nothing(node.line);
  }

  private refused(line: number, message: string): SourceNode {
    this.refuse(line, message);
    return nothing(line);
  }

  private lineOf(node: unknown, fallback: number): number {
    const range = (node as { readonly range?: readonly number[] | null } | null)?.range;
    return range?.[0] === undefined ? fallback : this.lineAt(range[0]);
  }
}

function nothing(line: number): SourceNode {
  return { kind: "scalar", line, size: 1, value: null, text: "" };
}

function sizeOf(nodes: readonly SourceNode[]): number {
  return nodes.reduce((sum, { size }) => sum + size, 1);
}
