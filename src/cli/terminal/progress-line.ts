// What a person sees while something takes its time: on a terminal one line that is written over, elsewhere a line
// for each change, so that a log of a build stays readable.
import type { Output } from "../io.ts";

export interface ProgressLine {
  /** `detail` changes all the time and is shown on a terminal only. */
  show(text: string, detail?: string): void;
  /** Takes the line away, so that something else can be written. */
  clear(): void;
}

const columnsDefault = 80;
const clearLine = "\r\u001b[K";

export function createProgressLine(output: Output): ProgressLine {
  let last = "";
  return {
    show(text, detail = "") {
      // A line that wraps cannot be written over. Some terminals say that they have 0 columns.
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
