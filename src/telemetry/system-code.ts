// What the operating system said, such as ECONNREFUSED: of an error that quotes a request, the part that holds nothing
// of it.
const causeDepthMax = 8;

/** The first code in the chain of causes; undefined where there is none. */
export function systemCodeOf(error: unknown): string | undefined {
  let current = error;
  for (let depth = 0; depth < causeDepthMax && current instanceof Error; depth++) {
    if ("code" in current && typeof current.code === "string") return current.code;
    current = current.cause;
  }
  return undefined;
}
