// Random choices of one kind. Every part of a world has its own, made from the world's seed and the part's name, so that a
// fault that is left out of a plan does not change what the others do.
import { createHash } from "node:crypto";
import { createSeededRandom, type Random } from "../src/concurrency/random.ts";

export class Choices implements Random {
  private readonly random: Random;

  constructor(seed: number, part: string) {
    const digest = createHash("sha256").update(`${seed} ${part}`).digest();
    this.random = createSeededRandom(digest.readUInt32BE(0));
  }

  next(): number {
    return this.random.next();
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  between(min: number, max: number): number {
    return min + this.next() * (max - min);
  }

  /** From 0 to `count` - 1. */
  index(count: number): number {
    return Math.floor(this.next() * count);
  }

  one<T>(items: readonly T[]): T {
    const item = items[this.index(items.length)];
    if (item === undefined) throw new RangeError("there is nothing to choose from");
    return item;
  }
}
