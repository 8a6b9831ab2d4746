// One warning for every secret that stands in a file, whichever part of krane reads it: whoever searches a log for it
// finds all of them.
import type { Log } from "./log.ts";

/** To be called each time that a file cannot be read while its last good value stays in use. */
export function secretWarning(log: Log): (error: Error & { readonly setting: string }) => void {
  return (error) =>
    log.warn("a secret cannot be read again; its last value stays in use", { setting: error.setting, error });
}
