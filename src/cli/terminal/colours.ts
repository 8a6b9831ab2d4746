// Colours for terminals only; files and pipes get plain text. They carry no information of their own. NO_COLOR turns
// them off, as in other programs.
import type { ProcessEnv } from "../../config/expand.ts";
import type { Output } from "../io.ts";

/** What a text means to the reader. */
export type Tone = "good" | "busy" | "bad" | "faint" | "strong";

export type Paint = (text: string, tone: Tone | undefined) => string;

const codes: Readonly<Record<Tone, string>> = { good: "32", busy: "33", bad: "31", faint: "2", strong: "1" };

export function createPaint(output: Output, env: ProcessEnv): Paint {
  const isPlain = !output.isTerminal || Boolean(env["NO_COLOR"]) || env["TERM"] === "dumb";
  return (text, tone) =>
    isPlain || tone === undefined || text === "" ? text : `\u001b[${codes[tone]}m${text}\u001b[0m`;
}
