// Gives Node, for each module of this project, the text without types that strip-types.ts has written. The module
// keeps its own address, so that what it finds beside itself and what a stack trace says do not change.
//
//   node --import ./.cache/stripped/tools/stripped-modules.mjs <file>.ts
import { readFile } from "node:fs/promises";
import { type LoadHook, register } from "node:module";
import { isMainThread } from "node:worker_threads";

const stripped = new URL("../", import.meta.url);
const project = new URL("../../", stripped);

// Node loads this file a second time, in the thread that answers for the modules.
if (isMainThread) register(import.meta.url);

export const load: LoadHook = async (url, context, nextLoad) => {
  if (!url.startsWith(project.href) || !url.endsWith(".ts")) return nextLoad(url, context);
  const name = url.slice(project.href.length).replace(/\.ts$/, ".mjs");
  return { format: "module", source: await readFile(new URL(name, stripped)), shortCircuit: true };
};
