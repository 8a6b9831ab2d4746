// The blocks of docs/quickstart.md. Each says in a comment before it whether the tests type it, so that none is forgotten.

import assert from "node:assert/strict";
import { readProjectFile } from "./project-files.ts";

export interface PageBlock {
  /** "prints": what the block before it prints. */
  readonly kind: "run" | "not run" | "prints";
  /** Why it is not run: the tool or the cloud that it needs. */
  readonly needs: string;
  readonly text: string;
  /** The heading above it. */
  readonly section: string;
}

const fence =
  /^(?:#+ (?<heading>.*)|(?:<!-- (?<kind>run|prints|not run)(?:: (?<needs>[^>]+))? -->\n)?```(?:sh)?\n(?<text>[\s\S]*?)```)$/gm;

export function quickstartBlocks(): readonly PageBlock[] {
  let section = "";
  const blocks: PageBlock[] = [];
  for (const { groups = {} } of readProjectFile("docs/quickstart.md").matchAll(fence)) {
    const { heading, kind, needs = "", text = "" } = groups;
    if (heading !== undefined) section = heading;
    else {
      assert.ok(kind === "run" || kind === "prints" || kind === "not run", `unmarked block: ${text}`);
      assert.equal(kind === "not run", needs !== "", text);
      blocks.push({ kind, needs, text, section });
    }
  }
  return blocks;
}
