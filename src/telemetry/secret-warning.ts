// The warning for a secret file that cannot be read, the same in all parts of krane, so that one search finds them all.
import type { Log } from "./log.ts";

/** Call the result each time a file cannot be read and its last good value stays in use. */
export function secretWarning(log: Log): (error: Error & { readonly setting: string }) => void {
  return (error) =>
    log.warn("cannot reload a secret; its last value stays in use", { setting: error.setting, error });
}
