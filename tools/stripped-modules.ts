// Makes Node load, for each module of this project, the text without types that strip-types.ts has written. The
// module keeps its URL, so that relative imports and stack traces do not change.
//
//   node --import ./.cache/stripped/tools/stripped-modules.mjs <file>.ts
import { readFile } from "node:fs/promises";
import { type LoadHook, register } from "node:module";
import { isMainThread } from "node:worker_threads";

const stripped = new URL("../", import.meta.url);
const project = new URL("../../", stripped);

// Node loads this file a second time, in the thread of the module hooks.
if (isMainThread) register(import.meta.url);

export const load: LoadHook = async (url, context, nextLoad) => {
  if (!url.startsWith(project.href) || !url.endsWith(".ts")) return nextLoad(url, context);
  const name = url.slice(project.href.length).replace(/\.ts$/, ".mjs");
  return { format: "module", source: await readFile(new URL(name, stripped)), shortCircuit: true };
};
