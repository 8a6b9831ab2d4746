// Runs test files in the given order, a given number at a time:
//
//   node --import tsx tools/test-suite.ts <at once> <file>...
//
// `node --test` sorts them, and then a long one that starts late keeps an otherwise idle machine waiting. Files run
// with the options of this process.
import { resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const [atOnce, ...files] = process.argv.slice(2);
const results = run({ concurrency: Number(atOnce), files: files.map((file) => resolve(file)) });
results.on("test:fail", ({ todo }) => {
  if (todo === undefined || todo === false) process.exitCode = 1;
});
results.compose(new spec()).pipe(process.stdout);
