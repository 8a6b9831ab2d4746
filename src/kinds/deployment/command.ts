// The entrypoint override: a program and its arguments, each as it is, never read by a shell.
import type { Refuse } from "../../model/field-problem.ts";

const field = "command";
const entriesMax = 1_024;
// Together with the variables this stays below what Linux hands to a new process, and even with every
// byte escaped the manifest stays below what the API server and its store accept.
const bytesMax = 128 * 1024;

export function parseCommand(entries: readonly string[], refuse: Refuse): readonly string[] {
  if (entries.length > entriesMax) {
    refuse(field, `has ${entries.length} entries, more than ${entriesMax}`);
    return [];
  }
  const bytes = entries.reduce((sum, entry) => sum + Buffer.byteLength(entry) + 1, 0);
  if (bytes > bytesMax) refuse(field, `has ${bytes} bytes, more than ${bytesMax}`);
  if (entries[0] === "") refuse(`${field}[0]`, "must name a program");
  for (const [index, entry] of entries.entries()) {
    // No process can be given a NUL, and half a character would come back from Kubernetes as another one.
    if (/\0|\p{Surrogate}/u.test(entry)) {
      refuse(`${field}[${index}]`, "has a NUL character or is not valid Unicode");
    }
  }
  return [...entries];
}
