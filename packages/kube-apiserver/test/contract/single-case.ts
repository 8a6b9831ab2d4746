// Runs the cases named as arguments on the embedded server of this tree, and prints what became of
// each: a line of JSON that the mutation test reads.
import { runCase } from "./contract-case.ts";
import { contractCases } from "./contract-cases.ts";
import { startInProcessTarget } from "./targets/embedded-server.ts";

const target = await startInProcessTarget();
const results: Record<string, string> = {};
for (const name of process.argv.slice(2)) {
  const found = contractCases.find((one) => one.name === name);
  if (found === undefined) throw new Error(`there is no case "${name}"`);
  results[name] = await runCase(target, found).then(
    () => "kept",
    (error: unknown) => `broken: ${error instanceof Error ? error.message : String(error)}`,
  );
}
await target.close();
console.log(JSON.stringify(results));
