// Completion as scripts for shells: a few lines that walk along what is typed so far, and the tables of the program.
// Nothing is run while a person types.
import type { CompletedCommand, CompletedValue } from "./completion-model.ts";

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

export function completionScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  if (shell === "fish") return fishScript(commands);
  // zsh runs completions of bash.
  const zsh = "#compdef krane\nautoload -U +X bashcompinit && bashcompinit\n";
  return `${shell === "zsh" ? zsh : ""}${bashScript(commands)}`;
}

// `words` and `value` are answers of the tables, `wanted` the flag whose value comes next. bash takes a "=" for a
// word of its own, so that --flag=value and --flag value look alike once it is left out. Behind "--" comes a
// command of somebody else's.
function bashScript(commands: readonly CompletedCommand[]): string {
  return `# What krane can be told, for completion in the shell. Made by: krane completion
_krane_words() {
  case "$1" in
${commands.map(wordsCase).join("\n")}
  *) return 1 ;;
  esac
}
_krane_flags() {
  case "$1" in
${commands.map(flagsCase).join("\n")}
  esac
}
_krane_value() {
  case "$1 $2" in
${valueCases(commands).join("\n")}
  *) return 1 ;;
  esac
}
_krane() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command=krane wanted= given= words= flags= value= word
  COMPREPLY=()
  [[ "$current" == "=" ]] && current=
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ "$word" == "=" ]] && continue
    if [[ -n "$wanted" ]]; then
      wanted=
      continue
    fi
    case "$word" in
    --) return ;;
    -*) _krane_value "$command" "$word" && wanted="$word" ;;
    *) if [[ -z "$given" ]] && _krane_words "$command $word"; then command="$command $word"; else given=yes; fi ;;
    esac
  done
  if [[ -n "$wanted" ]]; then
    _krane_value "$command" "$wanted"
    if [[ "$value" == "<file>" ]]; then
      type compopt >/dev/null 2>&1 && compopt -o filenames 2>/dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$current")
      return
    fi
  else
    _krane_words "$command"
    _krane_flags "$command"
    [[ -n "$given" ]] && words=
    value="$words"
    if [[ "$current" == -* || -z "$words" ]]; then value="$flags"; fi
  fi
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$value" -- "$current")
}
complete -F _krane krane
`;
}

function wordsCase({ path, below, words }: CompletedCommand): string {
  return `  ${quoted(path)}) words=${quoted([...below, ...words].join(" "))} ;;`;
}

function flagsCase({ path, options }: CompletedCommand): string {
  return `  ${quoted(path)}) flags=${quoted(options.flatMap(({ names }) => names).join(" "))} ;;`;
}

interface FlagValue {
  readonly path: string;
  readonly name: string;
  /** Undefined for a flag that takes none. */
  readonly value: string | undefined;
}

/** A flag that means the same wherever it stands is named without its command; flags with one value share a line. */
function valueCases(commands: readonly CompletedCommand[]): readonly string[] {
  const all = commands.flatMap(({ path, options }) =>
    options.flatMap(({ names, value }): readonly FlagValue[] =>
      names.map((name) => ({ path, name, value: valueText(value) })),
    ),
  );
  const valuesOf = new Map<string, Set<string | undefined>>();
  for (const { name, value } of all) valuesOf.set(name, (valuesOf.get(name) ?? new Set()).add(value));
  const patternsOf = new Map<string, Set<string>>();
  for (const { path, name, value } of all) {
    if (value === undefined) continue;
    const isSameEverywhere = valuesOf.get(name)?.size === 1;
    const pattern = isSameEverywhere ? `*${quoted(` ${name}`)}` : quoted(`${path} ${name}`);
    patternsOf.set(value, (patternsOf.get(value) ?? new Set()).add(pattern));
  }
  return [...patternsOf].map(
    ([value, patterns]) => `  ${[...patterns].join(" | ")}) value=${quoted(value)} ;;`,
  );
}

function valueText(value: CompletedValue): string | undefined {
  if (value.kind === "none") return undefined;
  if (value.kind === "words") return value.words.join(" ");
  return value.kind === "file" ? "<file>" : "";
}

function fishScript(commands: readonly CompletedCommand[]): string {
  const paths = commands.map(({ path }) => fishQuoted(path)).join(" ");
  return `# What krane can be told, for completion in the shell. Made by: krane completion
set -g __krane_commands ${paths}
function __krane_at
    set -l command krane
    for word in (commandline -opc)[2..-1]
        contains -- "$command $word" $__krane_commands; and set command "$command $word"
    end
    test "$command" = "$argv[1]"
end
complete -c krane -f
${commands.flatMap((command) => fishLines(command, commands)).join("\n")}
`;
}

function fishLines(
  { path, below, options, words }: CompletedCommand,
  commands: readonly CompletedCommand[],
): readonly string[] {
  const start = `complete -c krane -n ${fishQuoted(`__krane_at "${path}"`)}`;
  const aboutOf = (word: string) => commands.find((each) => each.path === `${path} ${word}`)?.about ?? "";
  return [
    ...below.map((word) => `${start} -a ${word} -d ${fishQuoted(aboutOf(word))}`),
    ...(words.length === 0 ? [] : [`${start} -a ${fishQuoted(words.join(" "))}`]),
    ...options.map(({ names, about, value }) => {
      const flags = names.map((name) =>
        name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const needs =
        value.kind === "none"
          ? []
          : value.kind === "file"
            ? ["-r -F"]
            : ["-x", ...(value.kind === "words" ? [`-a ${fishQuoted(value.words.join(" "))}`] : [])];
      return [start, ...flags, ...needs, `-d ${fishQuoted(about)}`].join(" ");
    }),
  ];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
