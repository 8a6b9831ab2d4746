// A full-screen interactive terminal. While held, it delivers single keys and draws on the alternate screen. On release,
// and even if the process crashes, the shell's screen and mode are restored: a terminal left in raw mode does not echo.
import { writeSync } from "node:fs";

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export interface HeldTerminal {
  size(): TerminalSize;
  /** Replaces the whole screen with these lines. */
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

/** Undefined unless both input and output are a terminal that can draw a screen. */
export function createTerminal(
  process: NodeJS.Process,
  writeNow: (fd: number, text: string) => void = writeSync,
): Terminal | undefined {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY || process.env["TERM"] === "dumb") return undefined;
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
  // Synchronous, because the event loop no longer runs when the process exits.
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
      // Overwrites the old lines; clearing the screen first would flicker.
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

/** The keys in one chunk of terminal input; escape sequences of other keys are ignored. */
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
