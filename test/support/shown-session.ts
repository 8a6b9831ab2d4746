// Sessions in a shell as documents show them: what is typed, and what is printed.
import assert from "node:assert/strict";

export interface Exchange {
  readonly command: string;
  readonly output: string;
}

/** The session between the markers `<!-- name:begin -->` and `<!-- name:end -->`. */
export function sessionOf(page: string, name: string): readonly Exchange[] {
  const marked = new RegExp(
    `<!-- ${name}:begin -->\\s*\`\`\`\\w*\\n([\\s\\S]*?)\`\`\`\\s*<!-- ${name}:end -->`,
  );
  const text = marked.exec(page)?.[1] ?? assert.fail(`no session between ${name} markers`);
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [command = "", ...output] = part.split("\n");
      return { command, output: output.join("\n") };
    });
}

/** What differs from run to run: ages, versions, hashes, the random ends of pod names, addresses, and so the width of columns. */
export function normalised(output: string): string {
  return output
    .replaceAll(/\b\d+(?:s|m\d*s?|h\d*m?)(?=\s|$)/gm, "AGE")
    .replaceAll(/\b(version) \d+\b/g, "$1 VERSION")
    .replaceAll(/\b(\w+-\d+)-[a-z0-9]{5}\b/g, "$1-POD")
    .replaceAll(/\b(\w+)-[a-z0-9]{8,10}-[a-z0-9]{5}\b/g, "$1-POD")
    .replaceAll(/(-hash:\s+)\S+/g, "$1HASH")
    .replaceAll(/\b\d+\.\d+\.\d+\.\d+\b/g, "ADDRESS")
    .replaceAll(/[ \t]+/g, " ")
    .trim();
}
