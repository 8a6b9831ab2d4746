// The notes of a release: the section of its version in CHANGELOG.md, for readers outside of the repository.

/** `files`: the address of the repository's files at that version, to which links are made absolute. */
export function releaseNotes(changelog: string, version: string, files: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => /^\S+/.exec(text)?.[0] === version);
  const body = section?.slice(section.indexOf("\n") + 1).trim();
  if (body === undefined || body === "") throw new Error(`CHANGELOG.md has nothing under "## ${version}"`);
  const linked = body.replaceAll(/\]\((?![a-z]+:|#)([^)]+)\)/g, `](${files}/$1)`);
  return `${unwrap(linked)}\n`;
}

/** GitHub shows every line break of release notes. */
function unwrap(text: string): string {
  return text.replaceAll(/([^\n])\n {2,}(?=\S)/g, "$1 ");
}
