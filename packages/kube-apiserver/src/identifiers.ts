// Generates uids and the suffixes of generated names, from the injected randomness, so that a run can be repeated.
import type { Random } from "./clock.ts";

// Without vowels and similar-looking characters, so that no words appear.
const suffixLetters = "bcdfghjklmnpqrstvwxz2456789";
const suffixLength = 5;
const namePrefixMax = 63 - suffixLength;

export function createUid(random: Random): string {
  const hex = Array.from({ length: 32 }, (_, index) => {
    // The two fixed digits make it a version 4 UUID.
    if (index === 12) return "4";
    const digit = Math.floor(random.next() * 16);
    return (index === 16 ? 8 + (digit % 4) : digit).toString(16);
  }).join("");
  return [8, 12, 16, 20, 32].map((end, part) => hex.slice([0, 8, 12, 16, 20][part], end)).join("-");
}

export function generateName(prefix: string, random: Random): string {
  return prefix.slice(0, namePrefixMax) + randomSuffix(random);
}

export function randomSuffix(random: Random): string {
  return Array.from(
    { length: suffixLength },
    () => suffixLetters[Math.floor(random.next() * suffixLetters.length)],
  ).join("");
}
