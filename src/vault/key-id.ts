// Ids of keys. They are no secrets, but two keys must never get the same one, also not
// when they are made by different vaults: hence 24 letters and digits from the system's
// generator, about 142 bits.
import { randomInt } from "node:crypto";

const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const length = 24;

export function randomKeyId(prefix: "dek" | "kek"): string {
  const rest = Array.from({ length }, () => characters.charAt(randomInt(characters.length))).join("");
  return `${prefix}_${rest}`;
}
