// A terminal that a person looks at and types into. While it is held, keys come one by one and lines replace
// one another on a screen of their own; when it is released, and also when the process dies of a bug, the shell
// gets back what it had. A terminal left raw shows nothing that is typed.
import { writeSync } from "node:fs";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface HeldTerminal {
  size(): TerminalSize;
  /** Shows these lines and nothing else. */
  draw(lines: readonly string[]): void;
  release(): void;
}

export interface TerminalListener {
  /** A character, or "up", "down", "ctrl-c". */
  onKey(key: string): void;
  onResize(): void;
}

export interface Terminal {
  hold(listener: TerminalListener): HeldTerminal;
}

const enterScreen = "\u001b[?1049h\u001b[?25l";
const leaveScreen = "\u001b[?25h\u001b[?1049l";
const home = "\u001b[H";
const clearLine = "\u001b[K";
const clearBelow = "\u001b[J";

/** Undefined unless a person is at both ends. */
export function createTerminal(
  process: NodeJS.Process,
  writeNow: (fd: number, text: string) => void = writeSync,
): Terminal | undefined {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return undefined;
  return { hold: (listener) => holdTerminal(process, writeNow, listener) };
}

function holdTerminal(
  process: NodeJS.Process,
  writeNow: (fd: number, text: string) => void,
  listener: TerminalListener,
): HeldTerminal {
  const { stdin, stdout } = process;
  const onData = (data: Buffer) => {
    for (const key of keysOf(data.toString("utf8"))) listener.onKey(key);
  };
  const onResize = () => listener.onResize();
  let isHeld = true;
  // Without the event loop: there is none any more when the process ends.
  const restore = () => {
    if (!isHeld) return;
    isHeld = false;
    stdin.setRawMode(false);
    writeNow(stdout.fd, leaveScreen);
  };
  process.once("exit", restore);
  stdin.setRawMode(true);
  stdin.on("data", onData).resume();
  stdout.on("resize", onResize);
  stdout.write(enterScreen);
  return {
    size: () => ({ columns: stdout.columns, rows: stdout.rows }),
    draw(lines) {
      if (!isHeld) return;
      // Written over the old lines rather than onto a cleared screen, which would flicker.
      stdout.write(`${home}${lines.map((line) => `${line}${clearLine}`).join("\r\n")}${clearBelow}`);
    },
    release() {
      stdin.off("data", onData).pause();
      stdout.off("resize", onResize);
      process.off("exit", restore);
      restore();
    },
  };
}

const escapeCharacter = "\u001b";
const named: ReadonlyMap<string, string> = new Map([
  ["[A", "up"],
  ["OA", "up"],
  ["[B", "down"],
  ["OB", "down"],
]);

/** The keys in what a terminal sends at once; sequences that stand for other keys are none of ours. */
export function keysOf(text: string): readonly string[] {
  const [plain = "", ...escaped] = text.split(escapeCharacter);
  return [
    ...charactersOf(plain),
    ...escaped.flatMap((part) => {
      const sequence = /^(?:\[[0-9;]*[ -/]*[@-~]|O.)/su.exec(part)?.[0] ?? "";
      const name = named.get(sequence);
      return [...(name === undefined ? [] : [name]), ...charactersOf(part.slice(sequence.length))];
    }),
  ];
}

function charactersOf(text: string): readonly string[] {
  return [...text].flatMap((character) => {
    if (character === "\u0003") return ["ctrl-c"];
    return /^\P{Cc}$/u.test(character) ? [character] : [];
  });
}
