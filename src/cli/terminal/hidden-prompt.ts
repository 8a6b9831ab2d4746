// Asks for something that must not be seen: what is typed is not shown, and the terminal is as before however the
// question ends. A terminal that stays silent afterwards looks broken to whoever sits there.

type Terminals = Pick<NodeJS.Process, "stdin" | "stderr" | "pid" | "kill" | "once" | "off">;

const enter = /[\r\n]/;
const erase = new Set(["\u007f", "\b"]);
const ctrlC = "\u0003";
const ctrlD = "\u0004";
const ctrlU = "\u0015";

/** What was typed up to Enter; undefined where nobody sits at a terminal. */
export async function askHidden(
  process: Terminals,
  question: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY || !stderr.isTTY) return undefined;
  signal.throwIfAborted();
  const restore = () => stdin.setRawMode(false);
  // Also when the process dies in between.
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
        // In raw mode nobody else turns it into the signal that ends every command.
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
