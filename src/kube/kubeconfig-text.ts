// Parses the text of a kubeconfig. It is imported when there is one: a pod has none, and the parser takes 8 MB. The package itself
// could not be imported so in the image, where a CommonJS package loses the names of its exports.
import { LineCounter, parseDocument } from "yaml";
import { credentialError } from "./credentials.ts";

export function parseText(text: string, file: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const error = document.errors[0];
  if (error === undefined) return document.toJS();
  // The parser's own message quotes the surrounding text, which may be a token (K7).
  throw credentialError(`${file} is not YAML: ${error.code} in line ${lines.linePos(error.pos[0]).line}`);
}
