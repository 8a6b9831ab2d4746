// docs/cli.md says what the program takes, checked both ways: its reference is written from the tree of commands.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { Command, Option } from "commander";
import { parseContextFile } from "../../src/cli/admin/context-file.ts";
import { exitCodeOfSignal, exitCodes } from "../../src/cli/exit-codes.ts";
import { createProgram, main } from "../../src/cli/main.ts";
import { FakeIo } from "../support/fake-io.ts";
import { readProjectFile } from "../support/project-files.ts";

const readPage = () => readProjectFile("docs/cli.md");
const generated = /(<!-- commands: [^\n]*-->\n)([\s\S]*?)(<!-- \/commands -->)/;

interface NamedCommand {
  readonly path: readonly string[];
  readonly command: Command;
}

/** Every command that does something, and those that only hold others, but what only scripts call. */
function commandsOf(command: Command, path: readonly string[] = []): readonly NamedCommand[] {
  const shown = command.createHelp().visibleCommands(command);
  return command.commands
    .filter((child) => shown.includes(child))
    .flatMap((child) => {
      const childPath = [...path, child.name()];
      return [{ path: childPath, command: child }, ...commandsOf(child, childPath)];
    });
}

const program = createProgram({}, new FakeIo(), () => undefined);
const commands = commandsOf(program);

/** One flag for each setting of a configuration: they are on pages of their own. */
const isSetting = ({ helpGroupHeading }: Option) => helpGroupHeading?.startsWith("Settings") === true;

function renderCommand({ path, command }: NamedCommand): string {
  const usage = ["krane", ...path, command.usage().replace(/^\[options\] ?/, "")].join(" ").trim();
  const options = command.options.filter((option) => !option.hidden && !isSetting(option));
  const rows = options.map(({ flags, description, defaultValue, defaultValueDescription }) => {
    const fallback = defaultValueDescription ?? (defaultValue === undefined ? "" : String(defaultValue));
    const about = `${description}${fallback === "" ? "" : ` (default: ${fallback})`}`;
    return `| \`${cell(flags)}\` | ${cell(about)} |`;
  });
  const table = rows.length === 0 ? "" : `\n\n| option | |\n|---|---|\n${rows.join("\n")}`;
  const settings = command.options.some(isSetting) ? "\n\nAnd a flag for each setting that it reads." : "";
  return `### krane ${path.join(" ")}\n\n\`${usage}\`: ${command.description()}.${table}${settings}\n`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

const reference = commands
  .filter(({ command }) => command.commands.length === 0 || command.options.length > 0)
  .map(renderCommand)
  .join("\n");

describe("docs/cli.md", () => {
  test("has every command and option, and no other", () => {
    if (process.env["UPDATE_GOLDEN"] === "1")
      writeFileSync(
        new URL("../../docs/cli.md", import.meta.url),
        readPage().replace(generated, (_, open, __, close) => `${open}\n${reference}\n${close}`),
      );
    assert.equal(generated.exec(readPage())?.[2]?.trim(), reference.trim());
  });

  test("has every exit code, and no other", () => {
    const table = readPage().split("## Exit codes")[1]?.split("\n## ")[0] ?? "";
    const documented = [...table.matchAll(/^\| ([\d, ]+) \|/gm)].flatMap(([, codes = ""]) =>
      codes.split(", ").map(Number),
    );
    const real = [...Object.values(exitCodes), exitCodeOfSignal("SIGINT"), exitCodeOfSignal("SIGTERM")];
    const inOrder = (codes: readonly number[]) => [...codes].sort((a, b) => a - b);
    assert.deepEqual(documented, inOrder(real));
    const shown = /Exit codes:\n([\s\S]*?)\n(?:\n|$)/.exec(helpOf(program))?.[1] ?? "";
    const listed = [...shown.matchAll(/(?:^|\s)(\d+(?:, \d+)*)(?= )/g)].flatMap(([, codes = ""]) =>
      codes.split(", "),
    );
    assert.deepEqual(inOrder(listed.map(Number)), inOrder(real), "krane --help lists the same");
  });

  test("shows a contexts file that is right", () => {
    const text = /```toml\n([\s\S]*?)```/.exec(readPage())?.[1] ?? "";
    const outcome = parseContextFile({ path: "config.toml", text });
    assert.equal(outcome.kind, "valid");
    assert.deepEqual(outcome.kind === "valid" && [...outcome.file.contexts.keys()], ["dev"]);
  });

  test("names no command, flag or variable that does not exist in its prose", () => {
    const prose = readPage().replace(generated, "");
    const flags = new Set(commands.flatMap(({ command }) => command.options.map(({ long }) => long)));
    for (const [, flag = ""] of prose.matchAll(/`(--[a-z-]+)/g)) assert.ok(flags.has(flag), flag);
    const names = new Set(commands.map(({ path }) => path[0]));
    for (const [, name = ""] of prose.matchAll(/`krane ([a-z]+)/g)) assert.ok(names.has(name), name);
  });
});

describe("the help of a command", () => {
  test("has examples, which begin with that command and take only what it takes", () => {
    for (const { path, command } of commands) {
      const name = `krane ${path.join(" ")}`;
      const examples = /\n(?:Examples?|To [^\n]*):\n([\s\S]*)/.exec(helpOf(command))?.[1] ?? "";
      assert.match(examples, new RegExp(`\\b${name}\\b`), `${name} --help has no example of itself`);
      assertFlagsExist(name, examples);
    }
  });

  test("is one call away for each of them", async () => {
    for (const { path } of commands) {
      const io = new FakeIo();
      assert.equal(await main([...path, "--help"], {}, io), 0, path.join(" "));
      assert.match(io.stdout.text, /^Usage: krane /);
    }
  });
});

/** Every line that can be typed, with its flags, against the tree. */
function assertFlagsExist(name: string, examples: string): void {
  for (const [, words = ""] of examples.matchAll(/^ {2}(?:[^\n]*[|(;] )?krane ([^\n]*)$/gm)) {
    const line = words.split(/ {3,}| -- | [|]+ |[,;)]/)[0] ?? "";
    const named = commands.filter(({ path }) => `${line} `.startsWith(`${path.join(" ")} `)).at(-1);
    assert.ok(named !== undefined, `${name} --help: krane ${line}: there is no such command`);
    for (const [, flag = ""] of line.matchAll(/(?:^|\s)(--?[a-z][a-z-]*)/g))
      assert.ok(
        named.command.options.some(({ short, long }) => flag === short || flag === long),
        `${name} --help: krane ${line}: there is no ${flag}`,
      );
  }
}

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => (text += part) });
  command.outputHelp();
  return text;
}
