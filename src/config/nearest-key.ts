// Suggests the name that a mistyped one was meant to be: a typo, another spelling (rpcPort, rpc-port), the flag's name
// used as a key, or the right key in the wrong section.

// Longer names are not typos of existing keys, and the cost of comparing them is quadratic.
const nameLengthMax = 64;

export interface NamedChoice {
  readonly name: string;
  /** Other names for the same thing, for example the flag of a setting. */
  readonly aliases?: readonly string[];
}

export function nearestName(wanted: string, choices: readonly NamedChoice[]): string | undefined {
  if (wanted.length > nameLengthMax) return undefined;
  const plainWanted = plain(wanted);
  const limit = Math.max(1, Math.min(3, Math.floor(plainWanted.length / 3)));

  let nearest: { name: string; distance: number } | undefined;
  for (const { name, aliases = [] } of choices) {
    const distance = Math.min(...[name, ...aliases].map((each) => editDistance(plainWanted, plain(each))));
    if (distance <= limit && distance < (nearest?.distance ?? Number.POSITIVE_INFINITY)) {
      nearest = { name, distance };
    }
  }
  return nearest?.name ?? sameLastPart(wanted, choices);
}

// "[metrics]" can only mean observability.metrics, but "token" could be one of five settings. Of several, the one at the
// top level is meant: in TOML, a top-level key that is written below a section becomes a part of that section.
function sameLastPart(wanted: string, choices: readonly NamedChoice[]): string | undefined {
  const last = plain(wanted.split(".").at(-1) ?? "");
  const same = choices.filter(({ name }) => plain(name.split(".").at(-1) ?? "") === last);
  const meant = same.length === 1 ? same[0] : same.find(({ name }) => !name.includes("."));
  return meant?.name;
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "");
}

/** The number of insertions, deletions, replacements and swaps of adjacent characters between two texts. */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(previous, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let best = Math.min(replaced, at(previous, j) + 1, at(current, j - 1) + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        best = Math.min(best, at(beforePrevious, j - 2) + 1);
      }
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return at(previous, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Number.POSITIVE_INFINITY;
}
