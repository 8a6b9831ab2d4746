// resourceVersions order the states of one kind of object. They are decimal numbers of any length,
// so they are compared as digits: as numbers they would collide above 2^53, and a BigInt for every
// event is garbage for nothing.

const decimal = /^(0|[1-9][0-9]*)$/;

/** Whether a is older than b; false where the two cannot be compared, so that nothing is dropped in doubt. */
export function isOlder(a: string, b: string): boolean {
  if (a === b || !decimal.test(a) || !decimal.test(b)) return false;
  return a.length === b.length ? a < b : a.length < b.length;
}

/** Whether something at version a has seen b. */
export function hasReached(a: string, b: string): boolean {
  return a === b || isOlder(b, a);
}
