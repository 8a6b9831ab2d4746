// A screen that shows nothing and a keyboard that nobody sits at.
import assert from "node:assert/strict";
import type { HeldTerminal, Terminal, TerminalListener } from "../../src/cli/terminal/terminal.ts";
import { eventually } from "./eventually.ts";

export class FakeTerminal implements Terminal {
  lines: readonly string[] = [];
  holds = 0;
  private listener: TerminalListener | undefined;

  hold(listener: TerminalListener): HeldTerminal {
    this.listener = listener;
    this.holds += 1;
    return {
      size: () => ({ columns: 200, rows: 60 }),
      draw: (lines) => {
        this.lines = lines;
      },
      release: () => undefined,
    };
  }

  press(key: string): void {
    this.listener?.onKey(key);
  }

  async shows(pattern: RegExp): Promise<void> {
    await eventually(`the screen shows ${pattern}`, () => assert.match(this.lines.join("\n"), pattern));
  }
}
