// The flag --if-version of commands that change something.
import { InvalidArgumentError, Option } from "commander";

export function ifVersion(about: string): Option {
  return new Option("--if-version <version>", about).argParser((text) => {
    if (/^\d{1,19}$/.test(text)) return BigInt(text);
    throw new InvalidArgumentError("Must be a version, a whole number.");
  });
}
