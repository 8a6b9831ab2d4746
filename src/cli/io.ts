// Everything that commands use of the outside world, so that tests can call main() with fakes. Results and logs go to
// standard output, messages for people to standard error.
import type { Terminal } from "./terminal/terminal.ts";

export type StopSignal = "SIGINT" | "SIGTERM";

export interface Output {
  readonly isTerminal: boolean;
  /** The width of the terminal, if it is one and reports it. */
  readonly columns?: number | undefined;
  /** Bytes that were written but not read yet; infinite once the reader is gone. */
  readonly backlogBytes: number;
  /** Never throws and never blocks. */
  write(text: string): void;
}

/** A temporary file that a person edits. */
export interface EditedFile {
  readonly path: string;
  /** Writes the text, opens the editor, and returns what the file then has. */
  edit(text: string, signal: AbortSignal): Promise<string>;
  discard(): Promise<void>;
}

export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  /** How to call this program again. */
  readonly program: string;
  readonly nodeVersion: string;
  /** The user's terminal, if any. Standard input is left alone until this is called. */
  terminal?(): Terminal | undefined;
  /** Rejects a file larger than `bytesMax`, by default 1 MiB. */
  readTextFile(path: string, signal: AbortSignal, bytesMax?: number): Promise<string>;
  /** Reads the file, or standard input without a path, as UTF-8 and unchanged. */
  readInput?(path: string | undefined, bytesMax: number, signal: AbortSignal): Promise<string>;
  /** Opens a page in the user's browser; resolves to false if there is none. */
  openUrl?(url: string): Promise<boolean>;
  /** The user's answer; undefined without a terminal. */
  ask?(question: string, signal: AbortSignal): Promise<string | undefined>;
  /** The same without echoing what is typed. */
  askHidden?(question: string, signal: AbortSignal): Promise<string | undefined>;
  /** A new temporary file with that name. `command`: the user's editor. */
  openEditor?(name: string, command: string): Promise<EditedFile>;
  /** Calls the listener on each stop signal, until the returned function is called. */
  onStopSignal(listener: (signal: StopSignal) => void): () => void;
  /** Ends the process immediately. */
  exit(code: number): void;
}
