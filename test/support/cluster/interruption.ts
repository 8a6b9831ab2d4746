// Turns the signals that ask a program to end into one AbortSignal. A second
// one ends it at once; the leashes clean up even then.

export function untilInterrupted(): AbortSignal {
  const interrupted = new AbortController();
  for (const [name, number] of [
    ["SIGINT", 2],
    ["SIGTERM", 15],
    ["SIGHUP", 1],
  ] as const) {
    process.on(name, () => {
      if (interrupted.signal.aborted) {
        process.exit(128 + number);
      }
      process.exitCode = 128 + number;
      interrupted.abort(new Error(`interrupted by ${name}`));
    });
  }
  return interrupted.signal;
}
