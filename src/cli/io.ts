// What commands touch of the outside world, in one place, so that tests can call
// main() with their own. Logs and results go to standard output, words for a person
// that are not the result to standard error.
import type { Terminal } from "./terminal/terminal.ts";

export type StopSignal = "SIGINT" | "SIGTERM";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Output {
  readonly isTerminal: boolean;
  /** How wide the terminal is, where it is one and says so. */
  readonly columns?: number | undefined;
  /** What was written but not yet taken by the reader. Infinite once the reader is gone. */
  readonly backlogBytes: number;
  /** Never throws and never waits. */
  write(text: string): void;
}

export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  /** What to type to call this program again. */
  readonly program: string;
  readonly nodeVersion: string;
  /** The terminal that a person sits at, if there is one. Standard input is not touched by who does not ask. */
  terminal?(): Terminal | undefined;
  /** Rejects where there is more than `bytesMax`, which is 1 MiB unless it is said. */
  readTextFile(path: string, signal: AbortSignal, bytesMax?: number): Promise<string>;
  /** What a person hands over: that file, or standard input without one. Exactly as it is, and UTF-8. */
  readInput?(path: string | undefined, bytesMax: number, signal: AbortSignal): Promise<string>;
  /** What the person at the terminal answers; undefined where nobody is there. */
  ask?(question: string, signal: AbortSignal): Promise<string | undefined>;
  /** The same for what must not be seen while it is typed. */
  askHidden?(question: string, signal: AbortSignal): Promise<string | undefined>;
  /** Calls the listener at each signal to stop, until the returned function is called. */
  onStopSignal(listener: (signal: StopSignal) => void): () => void;
  /** Ends the process at once. */
  exit(code: number): void;
}
