// Runs test files in the order in which they are named, so many at once:
//
//   node --import tsx tools/test-suite.ts <at once> <file>...
//
// `node --test` sorts them, and then a long one that comes late is waited for by a machine that has nothing else
// to do. Files run with the options that this process was given.
import { resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const [atOnce, ...files] = process.argv.slice(2);
const results = run({ concurrency: Number(atOnce), files: files.map((file) => resolve(file)) });
results.on("test:fail", ({ todo }) => {
  if (todo === undefined || todo === false) process.exitCode = 1;
});
results.compose(new spec()).pipe(process.stdout);
