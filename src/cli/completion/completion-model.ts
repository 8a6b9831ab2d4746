// What can be typed, read from the program itself, so that completion knows every command and flag that there is
// and none that there is not.
import type { Command, Option } from "commander";

export interface CompletedCommand {
  /** From the program on: "krane config check". */
  readonly path: string;
  readonly about: string;
  /** The last words of the paths below it. */
  readonly below: readonly string[];
  readonly options: readonly CompletedOption[];
  /** What its first argument may be, as far as that is known. */
  readonly words: readonly string[];
}

export interface CompletedOption {
  /** "-o" and "--output", as far as there are both. */
  readonly names: readonly string[];
  readonly about: string;
  readonly value: CompletedValue;
}

export type CompletedValue =
  | { readonly kind: "none" }
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "file" }
  /** Something that only the person knows. */
  | { readonly kind: "other" };

/** `firstWords`: what the first argument may be, by the path of the command, where the program itself does not say. */
export function completedCommands(
  program: Command,
  firstWords: ReadonlyMap<string, readonly string[]> = new Map(),
  path = program.name(),
): readonly CompletedCommand[] {
  const help = program.createHelp();
  const below = help.visibleCommands(program);
  const [argument] = program.registeredArguments;
  const here = {
    path,
    about: program.description(),
    below: below.map((command) => command.name()),
    options: help.visibleOptions(program).map(completedOption),
    words: argument?.argChoices ?? firstWords.get(path) ?? [],
  };
  // The command for help explains those beside it, and has no parent by which it could know them.
  const helped = new Map([...firstWords, [`${path} help`, here.below.filter((word) => word !== "help")]]);
  return [
    here,
    ...below.flatMap((command) => completedCommands(command, helped, `${path} ${command.name()}`)),
  ];
}

function completedOption(option: Option): CompletedOption {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  return { names, about: option.description, value: completedValue(option) };
}

/** A value that may be left out is not waited for: what follows such a flag is most often something else. */
function completedValue({ required, flags, argChoices }: Option): CompletedValue {
  if (!required) return { kind: "none" };
  if (argChoices !== undefined) return { kind: "words", words: argChoices };
  return /<(path|file|dir)/.test(flags) ? { kind: "file" } : { kind: "other" };
}
