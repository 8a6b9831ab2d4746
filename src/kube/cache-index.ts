// Finds cached entries by something they have in common, such as the pods of one deployment,
// without walking the whole cache. Most groups are a handful of entries, and for those an array of
// exactly their size takes half the memory of a Set; a large one becomes a Set, so that a change
// never costs a walk through thousands.

const arrayMax = 16;

export class CacheIndex<E> {
  private readonly groups = new Map<string, readonly E[] | Set<E>>();
  private readonly nameOf: (entry: E) => string | undefined;

  constructor(nameOf: (entry: E) => string | undefined) {
    this.nameOf = nameOf;
  }

  add(entry: E): void {
    const name = this.nameOf(entry);
    if (name === undefined) return;
    const group = this.groups.get(name) ?? [];
    if (group instanceof Set) group.add(entry);
    // concat() makes an array of the exact size; a spread would reserve room for sixteen more.
    else this.groups.set(name, group.length < arrayMax ? group.concat([entry]) : new Set([...group, entry]));
  }

  remove(entry: E): void {
    const name = this.nameOf(entry);
    const group = name === undefined ? undefined : this.groups.get(name);
    if (name === undefined || group === undefined) return;
    const left = group instanceof Set ? group : group.filter((one) => one !== entry);
    if (left instanceof Set) left.delete(entry);
    else this.groups.set(name, left);
    if ((left instanceof Set ? left.size : left.length) === 0) this.groups.delete(name);
  }

  get(name: string): readonly E[] {
    return [...(this.groups.get(name) ?? [])];
  }

  names(): IterableIterator<string> {
    return this.groups.keys();
  }
}
