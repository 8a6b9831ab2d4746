// Compares resourceVersions. They are decimal numbers of any length, so they are compared as strings: numbers would
// collide above 2^53, and a BigInt per event would be needless garbage.

const decimal = /^(0|[1-9][0-9]*)$/;

/** Whether a is older than b; false if the two cannot be compared, so that nothing is dropped by mistake. */
export function isOlder(a: string, b: string): boolean {
  if (a === b || !decimal.test(a) || !decimal.test(b)) return false;
  return a.length === b.length ? a < b : a.length < b.length;
}

/** Whether version a includes version b. */
export function hasReached(a: string, b: string): boolean {
  return a === b || isOlder(b, a);
}
