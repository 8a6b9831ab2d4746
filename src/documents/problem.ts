// A problem in a document, with its file and line.

export interface DocumentProblem {
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** The field by its name in the document, such as `healthcheck.path`; empty for the document as a whole. */
  readonly path: string;
  /** Continues the sentence after the path: "must be at least 0". */
  readonly message: string;
}

/** `hello.yaml:7: replicas must be from 0 to 10000, but is -1` */
export function renderDocumentProblems(problems: readonly DocumentProblem[]): string {
  return problems
    .map(({ file, line, path, message }) => `${file}:${line}: ${path === "" ? "" : `${path} `}${message}`)
    .map((text) => `${escapeControls(text)}\n`)
    .join("");
}

/** Names of files and fields are untrusted: they may contain terminal escape sequences or line breaks. */
function escapeControls(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
}
