// The names of an object's members in the order of their characters. Every event of every object comes through
// here several times: Array.sort() would copy the names, and that was a quarter of all memory that a flood of new
// deployments made garbage of. Few names, most of them in order already, need no copy.
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
