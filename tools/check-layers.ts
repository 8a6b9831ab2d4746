// `make check`: checks that imports point down. Fails if it saw no modules at all, because a
// parser that silently understands nothing would otherwise always report success.
import { fileURLToPath } from "node:url";
import { cruise, type ICruiseResult } from "dependency-cruiser";
import extractTypeScriptConfig from "dependency-cruiser/config-utl/extract-ts-config";
import { forbidden } from "./layer-rules.ts";

export async function checkLayers(baseDir: string, folders: readonly string[]): Promise<ICruiseResult> {
  const reply = await cruise(
    [...folders],
    {
      baseDir,
      ruleSet: { forbidden: [...forbidden] },
      validate: true,
      tsPreCompilationDeps: true,
      doNotFollow: { path: "node_modules" },
      exclude: { path: "^(tools/node24|packages/[^/]+/dist)/" },
    },
    {
      extensions: [".ts", ".tsx", ".js", ".mjs", ".d.ts"],
      conditionNames: ["import", "types", "node"],
      exportsFields: ["exports"],
    },
    { tsConfig: extractTypeScriptConfig(fileURLToPath(new URL("../tsconfig.json", import.meta.url))) },
  );
  return reply.output as ICruiseResult;
}

export function describeViolations(result: ICruiseResult): string[] {
  const ours = result.modules.filter((module) =>
    /^(src|packages|sim|test|tools|bench)\//.test(module.source),
  );
  if (ours.length === 0) return ["layers: saw 0 modules, so nothing was checked"];
  const advice = new Map(forbidden.map((rule) => [rule.name, rule.comment]));
  return result.summary.violations.map(
    (violation) =>
      `${violation.from} -> ${violation.to} [${violation.rule.name}]: ${advice.get(violation.rule.name)}`,
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const result = await checkLayers(process.cwd(), ["src", "packages", "sim", "test", "tools", "bench"]);
  const problems = describeViolations(result);
  for (const problem of problems) console.error(problem);
  console.log(`layers: ${result.modules.length} modules, ${problems.length} problems`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
