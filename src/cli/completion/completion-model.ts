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
  /** Whether krane has to be asked for more values of its arguments: names of objects. */
  readonly isLive: boolean;
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
  /** krane has to be asked. */
  | { readonly kind: "live" }
  /** A value that cannot be completed. */
  | { readonly kind: "other" };

export interface KnownWords {
  /** Possible values of the first argument by command path, for commands that do not declare them. */
  readonly first?: ReadonlyMap<string, readonly string[]>;
  /** The paths of commands with arguments that krane has to be asked for. */
  readonly live?: ReadonlyMap<string, unknown>;
  /** The same of flags, in commands that work with a control plane. */
  readonly liveFlags?: readonly string[];
}

export function completedCommands(
  program: Command,
  known: KnownWords = {},
  path = program.name(),
): readonly CompletedCommand[] {
  const help = program.createHelp();
  const below = help.visibleCommands(program);
  const [argument] = program.registeredArguments;
  // Parts of krane have a --region of their own, which is a setting.
  const isRemote = program.options.some(({ long }) => long === "--context");
  const liveFlags = isRemote ? (known.liveFlags ?? []) : [];
  const here = {
    path,
    about: program.description(),
    below: below.map((command) => command.name()),
    options: help.visibleOptions(program).map((option) => completedOption(option, liveFlags)),
    words: argument?.argChoices ?? known.first?.get(path) ?? [],
    isLive: known.live?.has(path) ?? false,
  };
  // `help` completes its sibling commands, but has no parent to look them up from.
  const first = new Map([
    ...(known.first ?? []),
    [`${path} help`, here.below.filter((word) => word !== "help")],
  ]);
  return [
    here,
    ...below.flatMap((command) =>
      completedCommands(command, { ...known, first }, `${path} ${command.name()}`),
    ),
  ];
}

function completedOption(option: Option, liveFlags: readonly string[]): CompletedOption {
  const names = [option.short, option.long].filter((name) => name !== undefined);
  return { names, about: option.description, value: completedValue(option, liveFlags) };
}

/** An optional value is not completed: the word after such a flag is usually something else. */
function completedValue(
  { required, flags, argChoices, long }: Option,
  liveFlags: readonly string[],
): CompletedValue {
  if (!required) return { kind: "none" };
  if (typeof long === "string" && liveFlags.includes(long)) return { kind: "live" };
  if (argChoices !== undefined) return { kind: "words", words: argChoices };
  return /<(path|file|dir)/.test(flags) ? { kind: "file" } : { kind: "other" };
}
