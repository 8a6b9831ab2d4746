// Moments as people ask for them: how long ago.

const units: readonly (readonly [letter: string, ms: number])[] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
];

/** `3s`, `12m`, `5h`, `2d`; empty for a moment that never was. Clocks differ: what is ahead of ours was just now. */
export function ageOf(atMs: bigint | number, nowMs: number): string {
  if (Number(atMs) === 0) return "";
  const ms = Math.max(0, nowMs - Number(atMs));
  const [letter, unitMs] = units.find(([, each]) => ms >= each) ?? ["s", 1_000];
  return `${Math.floor(ms / unitMs)}${letter}`;
}

/** The moment itself, in UTC; empty for one that never was. */
export function momentOf(atMs: bigint | number): string {
  if (Number(atMs) === 0) return "";
  // biome-ignore lint/style/noRestrictedGlobals: a conversion of a given moment, which reads no clock
  return new Date(Number(atMs)).toISOString().replace(/\.\d+Z$/, "Z");
}
