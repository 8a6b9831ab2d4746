// krane doctor: checks everything that an agent needs, and says how to fix what is wrong. The checks are imported only
// when the command runs.
import { type Command, Option } from "commander";
import { createSystemClock } from "../concurrency/clock.ts";
import type { ProcessEnv } from "../config/expand.ts";
import { parseConfig } from "../config/parse.ts";
import type { Finding, FindingState } from "../doctor/finding.ts";
import { createCommandRunner } from "../kube/command-runner.ts";
import { printable } from "../telemetry/scrub.ts";
import { addConfigOptions, readConfigAs } from "./config-source.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { runInterruptible } from "./process/interruptible.ts";
import { createPaint, type Paint, type Tone } from "./terminal/colours.ts";
import { renderValue } from "./terminal/output.ts";

interface DoctorDeps {
  readonly env: ProcessEnv;
  readonly io: Io;
}

const examples = `
Examples:
  krane doctor --config krane.toml            with the agent's configuration and credentials
  krane doctor --config krane.toml -o json    for scripts
  krane doctor --config krane.toml --kubernetes-kubeconfig ~/.kube/config
                                              with your own permissions, to check more of the cluster

It changes nothing. The exit code is 0 if there is no problem, otherwise 1.
`;

export function addDoctorCommand(program: Command, deps: DoctorDeps, exitWith: (code: number) => void): void {
  const doctor = program.command("doctor").description("check everything that an agent needs to run");
  addConfigOptions(doctor)
    .addOption(
      new Option("-o, --output <format>", "output format")
        .choices(["table", "json", "yaml"])
        .default("table"),
    )
    .addHelpText("after", examples)
    .action(async () =>
      exitWith(await runInterruptible(deps.io, (signal) => runDoctor(doctor, deps, signal))),
    );
}

async function runDoctor(command: Command, deps: DoctorDeps, signal: AbortSignal): Promise<number> {
  const { env, io } = deps;
  const { output } = command.opts<{ output: "table" | "json" | "yaml" }>();
  const findings = await look(command, deps, signal);
  const problems = findings.filter(({ state }) => state === "problem").length;
  if (output === "table") {
    const style = io.stdout.isTerminal ? marks : words;
    io.stdout.write(renderFindings(findings, style, createPaint(io.stdout, env)));
  } else {
    io.stdout.write(await renderValue({ problems, findings: findings.map((each) => ({ ...each })) }, output));
  }
  return problems === 0 ? exitCodes.ok : exitCodes.failure;
}

async function look(
  command: Command,
  { env, io }: DoctorDeps,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { outcome, path } = await readConfigAs(parseConfig, command, env, io, signal);
  const { configurationFindings } = await import("../doctor/configuration-findings.ts");
  const findings = configurationFindings(outcome, path);
  if (outcome.kind === "invalid") return findings;
  const { instanceId, region, observability } = outcome.config;
  const { createProcessLog } = await import("./process/process-log.ts");
  const log = createProcessLog(
    {
      instance: { id: instanceId, region: region.label, version: "" },
      logging: { ...observability.logging, level: "error" },
    },
    io.stderr,
    env,
  );
  const { examine } = await import("../doctor/examine.ts");
  const deps = {
    clock: createSystemClock(),
    log,
    env,
    readTextFile: io.readTextFile,
    runCommand: createCommandRunner(env),
  };
  return [...findings, ...(await examine(outcome.config, deps, signal))];
}

interface Look {
  readonly text: string;
  readonly tone: Tone;
}

const marks: Readonly<Record<FindingState, Look>> = {
  ok: { text: "✓", tone: "good" },
  warning: { text: "!", tone: "busy" },
  problem: { text: "✗", tone: "bad" },
  skipped: { text: "-", tone: "faint" },
};

/** For files and pipes, which may not support the symbols. */
const words: typeof marks = {
  ok: { text: "ok", tone: "good" },
  warning: { text: "warning", tone: "busy" },
  problem: { text: "problem", tone: "bad" },
  skipped: { text: "skipped", tone: "faint" },
};

function renderFindings(findings: readonly Finding[], style: typeof marks, paint: Paint): string {
  const stateWidth = Math.max(...Object.values(style).map(({ text }) => text.length));
  const nameWidth = Math.max(0, ...findings.map(({ name }) => name.length));
  const indent = " ".repeat(stateWidth + nameWidth + 4);
  const lines = findings.map(({ name, state, finding, remedy }) => {
    const { text, tone } = style[state];
    const head = `${paint(text, tone)}${" ".repeat(stateWidth - text.length)}  ${name.padEnd(nameWidth)}`;
    const line = `${head}  ${printable(finding)}\n`;
    return remedy === "" ? line : `${line}${indent}${paint(`remedy: ${printable(remedy)}`, "strong")}\n`;
  });
  const count = (wanted: FindingState) => findings.filter(({ state }) => state === wanted).length;
  const summary = `problems: ${count("problem")}, warnings: ${count("warning")}, skipped: ${count("skipped")}`;
  return `${lines.join("")}\n${summary}\n`;
}
