// `make bench`: every figure that krane's documents name, measured in one run, each with
// the raw limit beside it. Machines are noisy, so the ratio is the figure to trust.
//   make bench                all of them
//   make bench only=start-up  one
import type { Benchmark } from "./benchmark.ts";
import { startUpBenchmark } from "./start-up.ts";

const benchmarks: readonly Benchmark[] = [startUpBenchmark];

const only = process.env["only"];
const chosen = benchmarks.filter((benchmark) => only === undefined || benchmark.name === only);
if (chosen.length === 0) {
  console.error(`no benchmark named ${only}; there are: ${benchmarks.map((b) => b.name).join(", ")}`);
  process.exit(64);
}
for (const benchmark of chosen) {
  console.log(`\n== ${benchmark.name}: ${benchmark.measures}`);
  for (const line of await benchmark.run()) console.log(line);
}
