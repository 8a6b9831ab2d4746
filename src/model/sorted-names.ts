// Sorts the property names of an object. Every event of every object comes through here several times, and Array.sort()
// copies the names: a quarter of all garbage in a flood of new deployments. Few names, mostly in order already, are sorted
// in place without a copy.
const fewNames = 32;

export function sortedNames(value: object): readonly string[] {
  const names = Object.keys(value);
  if (names.length > fewNames) return names.sort();
  for (let next = 1; next < names.length; next++) {
    const name = names[next] ?? "";
    let place = next;
    for (; place > 0; place--) {
      const before = names[place - 1] ?? "";
      if (before <= name) break;
      names[place] = before;
    }
    if (place < next) names[place] = name;
  }
  return names;
}
