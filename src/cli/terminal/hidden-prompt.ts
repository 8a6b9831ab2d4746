// Prompts for a secret without echoing it. The terminal is always restored afterwards: one that stays in raw mode looks
// broken.

type Terminals = Pick<NodeJS.Process, "stdin" | "stderr" | "pid" | "kill" | "once" | "off">;

const enter = /[\r\n]/;
const erase = new Set(["\u007f", "\b"]);
const ctrlC = "\u0003";
const ctrlD = "\u0004";
const ctrlU = "\u0015";

/** Returns what was typed up to Enter; undefined without a terminal. */
export async function askHidden(
  process: Terminals,
  question: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return undefined;
  signal.throwIfAborted();
  const restore = () => stdin.setRawMode(false);
  // Also if the process exits during the prompt.
  process.once("exit", restore);
  stdin.setRawMode(true);
  stderr.write(question);
  try {
    return await readLine(process, signal);
  } finally {
    restore();
    process.off("exit", restore);
    stdin.pause();
    stderr.write("\n");
  }
}

function readLine(process: Terminals, signal: AbortSignal): Promise<string> {
  const { stdin } = process;
  return new Promise((resolve, reject) => {
    let typed = "";
    const decoder = new TextDecoder();
    const end = (finish: () => void) => {
      stdin.off("data", onData);
      signal.removeEventListener("abort", onAbort);
      finish();
    };
    const onAbort = () => end(() => reject(signal.reason));
    const onData = (data: Buffer) => {
      for (const character of decoder.decode(data, { stream: true })) {
        if (enter.test(character) || character === ctrlD) return end(() => resolve(typed));
        // In raw mode the terminal does not turn Ctrl-C into SIGINT.
        if (character === ctrlC) process.kill(process.pid, "SIGINT");
        else if (character === ctrlU) typed = "";
        else if (erase.has(character)) typed = [...typed].slice(0, -1).join("");
        else typed += character;
      }
    };
    signal.addEventListener("abort", onAbort, { once: true });
    stdin.on("data", onData).resume();
  });
}
