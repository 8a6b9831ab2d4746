// The outside world of a command, held in memory: files by path, what was written, and
// signals that a test sends.
import type { Io, Output, StopSignal } from "../../src/cli/io.ts";

export class FakeIo implements Io {
  readonly program = "krane";
  readonly nodeVersion = process.version;
  readonly stdout = new FakeOutput();
  readonly stderr = new FakeOutput();
  readonly exits: number[] = [];
  private readonly files: Readonly<Record<string, string>>;
  private readonly listeners = new Set<(signal: StopSignal) => void>();

  constructor(files: Readonly<Record<string, string>> = {}) {
    this.files = files;
  }

  readonly readTextFile = async (path: string): Promise<string> => {
    const text = this.files[path];
    if (text !== undefined) return text;
    throw new Error("no such file", { cause: Object.assign(new Error("ENOENT"), { code: "ENOENT" }) });
  };

  onStopSignal(listener: (signal: StopSignal) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  exit(code: number): void {
    this.exits.push(code);
  }

  /** How many listen for signals: 0 once a command has ended. */
  get signalListeners(): number {
    return this.listeners.size;
  }

  send(signal: StopSignal): void {
    for (const listener of this.listeners) listener(signal);
  }
}

export class FakeOutput implements Output {
  isTerminal = false;
  backlogBytes = 0;
  text = "";

  write(text: string): void {
    this.text += text;
  }
}
