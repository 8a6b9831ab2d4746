// Strips the types from every module, for a Node that cannot do so itself: Node 24 runs this, and Node 20 then runs
// the result in .cache/stripped (see stripped-modules.ts). A compiler at the start of each of some hundred processes
// costs more than the tests in most of them. Types become blanks, so that lines and columns in stack traces match
// the source.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { dirname, join } from "node:path";

// The type declarations here are those of the oldest supported Node, which lacks this function.
const { stripTypeScriptTypes } = nodeModule as unknown as { stripTypeScriptTypes(code: string): string };
const target = ".cache/stripped";

// A module that was deleted or renamed would otherwise still be found.
rmSync(target, { recursive: true, force: true });
for (const folder of ["src", "packages", "sim", "test", "tools"]) {
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const source = join(folder, name);
    if (!source.endsWith(".ts") || /(^|\/)(node_modules|dist)\//.test(source)) continue;
    const stripped = join(target, source.replace(/\.ts$/, ".mjs"));
    mkdirSync(dirname(stripped), { recursive: true });
    writeFileSync(stripped, stripTypeScriptTypes(readFileSync(source, "utf8")));
  }
}
