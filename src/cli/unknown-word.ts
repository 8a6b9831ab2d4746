// A word where the name of a command should stand, refused as the library refuses one, with the name that may be meant.
import type { Command } from "commander";
import { nearestName } from "../config/nearest-key.ts";

/** `otherwise`: what to say where no name is near. */
export function refuseWord(command: Command, word: string, otherwise = ""): never {
  const names = command.commands.map((each) => ({ name: each.name() }));
  const near = nearestName(word, names);
  const hint = near === undefined ? otherwise : `Did you mean ${near}?`;
  return command.error(`error: unknown command '${word}'${hint === "" ? "" : `\n(${hint})`}`);
}
