// Reads the user's input: a file or standard input. Secrets are never arguments, because every user of the machine could
// read those.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline/promises";
import { addAbortSignal, type Readable } from "node:stream";
import { CodedError } from "../../errors/coded-error.ts";
import { tooLarge } from "./text-file.ts";

class InputError extends CodedError<"InputError"> {
  override readonly name = "InputError";
}

/** Reads the whole stream as text, unchanged. */
export async function readInput(
  input: { readonly path: string | undefined; readonly stdin: Readable; readonly bytesMax: number },
  signal: AbortSignal,
): Promise<string> {
  const { path, stdin, bytesMax } = input;
  const name = path ?? "standard input";
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of addAbortSignal(signal, path === undefined ? stdin : createReadStream(path))) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > bytesMax) {
        const cause = tooLarge(bytesMax);
        throw new InputError("too_large", `${name}: is larger than ${bytesMax} bytes`, { cause });
      }
    }
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof InputError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new InputError("unreadable", `${name}: cannot be read: ${reason}`, { cause });
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new InputError(
      "not_text",
      `${name}: is not UTF-8 text; save it as UTF-8, or encode binary data, for example as base64`,
    );
  }
}

/** The value that a text holds: `echo` and most editors add a final newline that is not part of it. Removes only one. */
export function withoutFinalNewline(text: string): string {
  return text.replace(/\r?\n$/, "");
}

/** Prompts on standard error, to keep standard output clean. */
export async function ask(
  { stdin, stderr }: Pick<NodeJS.Process, "stdin" | "stderr">,
  question: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!stdin.isTTY || !stderr.isTTY) return undefined;
  // terminal: false, because readline's key handling would swallow Ctrl-C.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    return await lines.question(question, { signal });
  } finally {
    lines.close();
  }
}
