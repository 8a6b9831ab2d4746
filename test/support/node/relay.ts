// Joins two connections into one. When either ends or fails, so does the other.

import type { Socket } from "node:net";

export function relay(left: Socket, right: Socket): void {
  for (const [from, to] of [
    [left, right],
    [right, left],
  ] as const) {
    from.pipe(to);
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
  }
}
