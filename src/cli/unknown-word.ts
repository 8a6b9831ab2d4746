// Rejects an unknown subcommand as Commander does, with a suggestion.
import type { Command } from "commander";
import { nearestName } from "../config/nearest-key.ts";

/** `otherwise`: the hint if no name is similar. */
export function refuseWord(command: Command, word: string, otherwise = ""): never {
  const names = command.commands.map((each) => ({ name: each.name() }));
  const near = nearestName(word, names);
  const hint = near === undefined ? otherwise : `Did you mean ${near}?`;
  return command.error(`error: unknown command '${word}'${hint === "" ? "" : `\n(${hint})`}`);
}
