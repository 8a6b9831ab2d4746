// Checks the configuration and the files that it names.
import { findUnusableFiles, type NamedFilesDeps } from "../agent/named-files.ts";
import type { Config } from "../config/config.ts";
import type { ConfigOutcome } from "../config/parse.ts";
import type { ConfigProblem } from "../config/problem.ts";
import type { Check } from "./checks.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

const name = "configuration";

export function configurationFindings(outcome: ConfigOutcome, file: string | undefined): readonly Finding[] {
  const warnings = outcome.warnings.map((each) => warning(name, findingOf(each), each.remedy));
  if (outcome.kind === "invalid")
    return [...outcome.problems.map((each) => problem(name, findingOf(each), each.remedy)), ...warnings];
  return [ok(name, `${file ?? "flags and environment"}: valid`), ...warnings];
}

function findingOf({ where, line, path, message }: ConfigProblem): string {
  const place = where === undefined ? "" : `${where}${line === undefined ? "" : `:${line}`}: `;
  return `${place}${path === "" ? "" : `${path}: `}${message}`;
}

export function filesCheck(config: Config, deps: NamedFilesDeps): Check {
  return {
    name: "files",
    async run(signal) {
      const unusable = await findUnusableFiles(config, deps, signal);
      if (unusable.length === 0) return [ok("files", "all files named in the configuration can be read")];
      const remedy = "correct the path, or make the file readable for krane's user";
      return unusable.map(({ message }) => problem("files", message, remedy));
    },
  };
}
