// The source of randomness. All of krane uses this interface, so that a run can be replayed from its seed. It is used for
// jitter and sampling, never for secrets.

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
}

export function createSystemRandom(): Random {
  return { next: () => Math.random() };
}

/** Uniform in [min, max). */
export function uniform(random: Random, min: number, max: number): number {
  return min + random.next() * (max - min);
}

/** A small deterministic generator (mulberry32): the same seed gives the same run. */
export function createSeededRandom(seed: number): Random {
  let state = seed >>> 0;
  return {
    next() {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    },
  };
}
