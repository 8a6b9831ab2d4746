// Generates the completion scripts: lookup tables of all commands and flags, and a few lines of shell that walk along
// the typed words. They run krane only for what is in no table: names of objects, contexts and regions.
import type { CompletedCommand, CompletedValue } from "./completion-model.ts";

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

export function completionScript(shell: Shell, commands: readonly CompletedCommand[]): string {
  if (shell === "fish") return fishScript(commands);
  return shell === "zsh" ? `${zshStart}${bashScript(commands)}${zshEnd}` : bashScript(commands);
}

// zsh can run bash completions. It runs a file from $fpath as the first completion itself, so a file that only
// registered a completion function would give nothing on the first Tab.
const zshStart = "#compdef krane\nautoload -U +X bashcompinit && bashcompinit\n";
const zshEnd = `[[ "\${funcstack[1]}" == _krane ]] && _bash_complete -F _krane\n`;

// `names` and `value` are results of the table lookups (`words` is a variable of zsh's own), `wanted` the flag whose
// value comes next. bash treats "=" as a separate word, so once it is skipped, --flag=value and --flag value look alike.
// After "--" comes another program's command line.
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
_krane_live() {
  case "$1" in
  ${liveCases(commands)}
  *) return 1 ;;
  esac
}
_krane_ask() {
  local word
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done < <("\${COMP_WORDS[0]}" complete-words -- "\${COMP_WORDS[@]:1:$COMP_CWORD}" </dev/null 2>/dev/null)
}
_krane() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command=krane wanted= given= names= flags= value= word
  COMPREPLY=()
  [[ "$current" == "=" ]] && current=
  for word in "\${COMP_WORDS[@]:1:$((COMP_CWORD - 1))}"; do
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
    if [[ "$value" == "<live>" ]]; then
      _krane_ask
      return
    fi
  else
    _krane_words "$command"
    _krane_flags "$command"
    if [[ "$current" != -* && ( -n "$given" || "$current" == */* || -z "$names" ) ]] && _krane_live "$command"; then
      _krane_ask
      [[ \${#COMPREPLY[@]} -gt 0 ]] && return
    fi
    [[ -n "$given" ]] && names=
    value="$names"
    if [[ "$current" == -* || -z "$names" ]]; then value="$flags"; fi
  fi
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$value" -- "$current")
}
complete -F _krane krane
`;
}

function wordsCase({ path, below, words }: CompletedCommand): string {
  return `  ${quoted(path)}) names=${quoted([...below, ...words].join(" "))} ;;`;
}

function liveCases(commands: readonly CompletedCommand[]): string {
  const paths = commands.filter(({ isLive }) => isLive).map(({ path }) => quoted(path));
  // A pattern without any command is a syntax error.
  return `${paths.join(" | ") || "''"}) ;;`;
}

function flagsCase({ path, options }: CompletedCommand): string {
  return `  ${quoted(path)}) flags=${quoted(options.flatMap(({ names }) => names).join(" "))} ;;`;
}

interface FlagValue {
  readonly path: string;
  readonly name: string;
  /** Undefined for a flag without a value. */
  readonly value: string | undefined;
}

/** A flag that means the same in all commands is listed without a command; flags with the same value share a line. */
function valueCases(commands: readonly CompletedCommand[]): readonly string[] {
  const patternsOf = new Map<string, Set<string>>();
  for (const { path, name, value, isSameEverywhere } of flagValues(commands)) {
    if (value === undefined) continue;
    const pattern = isSameEverywhere ? `*${quoted(` ${name}`)}` : quoted(`${path} ${name}`);
    patternsOf.set(value, (patternsOf.get(value) ?? new Set()).add(pattern));
  }
  return [...patternsOf].map(
    ([value, patterns]) => `  ${[...patterns].join(" | ")}) value=${quoted(value)} ;;`,
  );
}

/** The flags that take a value, with or without a command in the same way. */
function valuedFlags(commands: readonly CompletedCommand[]): readonly string[] {
  const names = flagValues(commands).flatMap(({ path, name, value, isSameEverywhere }) =>
    value === undefined ? [] : [isSameEverywhere ? name : `${path} ${name}`],
  );
  return [...new Set(names)];
}

function flagValues(
  commands: readonly CompletedCommand[],
): readonly (FlagValue & { readonly isSameEverywhere: boolean })[] {
  const all = commands.flatMap(({ path, options }) =>
    options.flatMap(({ names, value }): readonly FlagValue[] =>
      names.map((name) => ({ path, name, value: valueText(value) })),
    ),
  );
  const valuesOf = new Map<string, Set<string | undefined>>();
  for (const { name, value } of all) valuesOf.set(name, (valuesOf.get(name) ?? new Set()).add(value));
  return all.map((each) => ({ ...each, isSameEverywhere: valuesOf.get(each.name)?.size === 1 }));
}

function valueText(value: CompletedValue): string | undefined {
  if (value.kind === "none") return undefined;
  if (value.kind === "words") return value.words.join(" ");
  return { file: "<file>", live: "<live>", other: "" }[value.kind];
}

// The same walk as in bash; `first` tests whether the word can be the first argument of its command, `rest` whether it can
// be a name behind a kind.
function fishScript(commands: readonly CompletedCommand[]): string {
  const paths = commands.map(({ path }) => fishQuoted(path)).join(" ");
  return `# What krane can be told, for completion in the shell. Made by: krane completion
set -g __krane_commands ${paths}
set -g __krane_valued ${valuedFlags(commands).map(fishQuoted).join(" ")}
function __krane_at
    set -l command krane
    set -l given no
    set -l wanted no
    for word in (commandline -opc)[2..-1]
        if test $wanted = yes
            set wanted no
        else if test "$word" = --
            return 1
        else if string match -q -- '-*' "$word"
            contains -- "$word" $__krane_valued; or contains -- "$command $word" $__krane_valued; and set wanted yes
        else if test $given = no; and contains -- "$command $word" $__krane_commands
            set command "$command $word"
        else
            set given yes
        end
    end
    test "$command" = "$argv[1]"; or return 1
    switch "$argv[2]"
        case first
            test $given = no
        case rest
            test $given = yes; or string match -q -- '*/*' (commandline -ct)
    end
end
function __krane_live
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    $words[1] complete-words -- $words[2..-1] "$current" </dev/null 2>/dev/null
end
complete -c krane -f
${commands.flatMap((command) => fishLines(command, commands)).join("\n")}
`;
}

function fishLines(
  { path, below, options, words, isLive }: CompletedCommand,
  commands: readonly CompletedCommand[],
): readonly string[] {
  const start = `complete -c krane -n ${fishQuoted(`__krane_at "${path}"`)}`;
  const first = `complete -c krane -n ${fishQuoted(`__krane_at "${path}" first`)}`;
  const rest = `complete -c krane -n ${fishQuoted(`__krane_at "${path}" rest`)}`;
  const aboutOf = (word: string) => commands.find((each) => each.path === `${path} ${word}`)?.about ?? "";
  return [
    ...below.map((word) => `${first} -a ${word} -d ${fishQuoted(aboutOf(word))}`),
    ...(words.length === 0 ? [] : [`${first} -a ${fishQuoted(words.join(" "))}`]),
    ...(isLive ? [`${words.length === 0 ? start : rest} -a '(__krane_live)'`] : []),
    ...options.map(({ names, about, value }) => {
      const flags = names.map((name) =>
        name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      const needs =
        value.kind === "none"
          ? []
          : value.kind === "file"
            ? ["-r -F"]
            : ["-x", ...(value.kind === "other" ? [] : [`-a ${valuesInFish(value)}`])];
      return [start, ...flags, ...needs, `-d ${fishQuoted(about)}`].join(" ");
    }),
  ];
}

function valuesInFish(value: Extract<CompletedValue, { readonly kind: "words" | "live" }>): string {
  return value.kind === "live" ? "'(__krane_live)'" : fishQuoted(value.words.join(" "));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
