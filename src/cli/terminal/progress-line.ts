// Shows progress: on a terminal one line that is overwritten, elsewhere one line per change, so that build logs stay
// readable.
import type { Output } from "../io.ts";

export interface ProgressLine {
  /** `detail` changes all the time, so it is shown only on a terminal. */
  show(text: string, detail?: string): void;
  /** Removes the line, so that other output can be written. */
  clear(): void;
}

const columnsDefault = 80;
const clearLine = "\r\u001b[K";

export function createProgressLine(output: Output): ProgressLine {
  let last = "";
  return {
    show(text, detail = "") {
      // A wrapped line cannot be overwritten. Some terminals report 0 columns.
      const whole = [...`${text}${detail}`].slice(0, (output.columns || columnsDefault) - 1).join("");
      if (output.isTerminal) output.write(`${clearLine}${whole}`);
      else if (text !== last) output.write(`${text}\n`);
      last = text;
    },
    clear() {
      if (output.isTerminal && last !== "") output.write(clearLine);
      last = "";
    },
  };
}
