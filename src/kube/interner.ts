// Makes equal strings one string. Every object that is parsed brings its own copy of the same labels
// and ids, and a cache would keep them all. Two tables take turns, so that the memory stays bounded
// (K10) while what is in use stays known.

export type Intern = <S extends string | undefined>(text: S) => S;

const tableMax = 1_024;

export function createInterner(): Intern {
  let young = new Map<string, string>();
  let old = new Map<string, string>();
  return <S extends string | undefined>(text: S): S => {
    if (text === undefined) return text;
    const known = young.get(text) ?? old.get(text) ?? text;
    if (young.size >= tableMax) {
      old = young;
      young = new Map();
    }
    young.set(known, known);
    return known as S;
  };
}
