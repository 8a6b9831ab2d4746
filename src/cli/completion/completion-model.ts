// Collects all commands, flags and values from the Commander program, so that completion always matches it.
import type { Command, Option } from "commander";

export interface CompletedCommand {
  /** The full path: "krane config check". */
  readonly path: string;
  readonly about: string;
  /** The names of its subcommands. */
  readonly below: readonly string[];
  readonly options: readonly CompletedOption[];
  /** The possible values of its first argument, if known. */
  readonly words: readonly string[];
}

export interface CompletedOption {
  /** "-o" and "--output", or only one of them. */
  readonly names: readonly string[];
  readonly about: string;
  readonly value: CompletedValue;
}

export type CompletedValue =
  | { readonly kind: "none" }
  | { readonly kind: "words"; readonly words: readonly string[] }
  | { readonly kind: "file" }
  /** A value that cannot be completed. */
  | { readonly kind: "other" };

/** `firstWords`: possible values of the first argument by command path, for commands that do not declare them. */
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
  // `help` completes its sibling commands, but has no parent to look them up from.
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

/** An optional value is not completed: the word after such a flag is usually something else. */
function completedValue({ required, flags, argChoices }: Option): CompletedValue {
  if (!required) return { kind: "none" };
  if (argChoices !== undefined) return { kind: "words", words: argChoices };
  return /<(path|file|dir)/.test(flags) ? { kind: "file" } : { kind: "other" };
}
