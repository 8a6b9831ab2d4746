// A screen that nobody sees, and a keyboard that nobody sits at.
import assert from "node:assert/strict";
import type { HeldTerminal, Terminal, TerminalListener } from "../../src/cli/terminal/terminal.ts";
import { eventually } from "./eventually.ts";

type Size = ReturnType<HeldTerminal["size"]>;

export class FakeTerminal implements Terminal {
  lines: readonly string[] = [];
  listener: TerminalListener | undefined;
  isHeld = false;
  /** How often it was taken. */
  holds = 0;
  private readonly size: Size;

  constructor(size: Size = { columns: 100, rows: 40 }) {
    this.size = size;
  }

  hold(listener: TerminalListener): HeldTerminal {
    this.listener = listener;
    this.isHeld = true;
    this.holds += 1;
    return {
      size: () => this.size,
      draw: (lines) => {
        this.lines = lines;
      },
      release: () => {
        this.isHeld = false;
      },
    };
  }

  press(key: string): void {
    this.listener?.onKey(key);
  }

  async shows(pattern: RegExp): Promise<void> {
    await eventually(`the screen shows ${pattern}`, () => assert.match(this.lines.join("\n"), pattern));
  }
}
