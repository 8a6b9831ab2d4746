// Two moments in the life of an answer that Node does not tell: when its handler has ended it, and when its
// client stops taking what the handler still writes.
import type { Writable } from "node:stream";
import type { Timer } from "../concurrency/clock.ts";

/** Calls back once, when `end()` was called: Node tells only when the client has taken it all. */
export function onceEnded(answer: Writable, listener: () => void): void {
  const { end } = answer;
  answer.end = (...args: unknown[]) => {
    answer.end = end;
    const ended = Reflect.apply(end, answer, args);
    listener();
    return ended;
  };
}

/** Runs a timer for as long as the client leaves something unread of an answer that has not ended. */
export function limitStalls(answer: Writable, startTimer: () => Timer): void {
  const { write } = answer;
  let timer: Timer | undefined;
  const stopTimer = () => {
    timer?.cancel();
    timer = undefined;
  };
  answer.write = (...args: unknown[]) => {
    const isTaken = Reflect.apply(write, answer, args);
    if (!isTaken && !answer.destroyed) timer ??= startTimer();
    return isTaken;
  };
  answer.on("drain", stopTimer);
  answer.once("close", stopTimer);
  onceEnded(answer, stopTimer);
}
