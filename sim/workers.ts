// Spreads runs over processes, because one run keeps one core busy. A worker is this program again, with worker=1.
import { fork } from "node:child_process";

/** Runs every task, one at a time in each of `count` workers, until `onOutcome` returns false. */
export async function runInWorkers<Task extends object, Outcome>(
  program: string,
  count: number,
  tasks: Iterable<Task>,
  onOutcome: (outcome: Outcome) => boolean,
): Promise<void> {
  const waiting = tasks[Symbol.iterator]();
  let isOver = false;
  const work = () =>
    new Promise<void>((resolve, reject) => {
      const worker = fork(program, ["worker=1"]);
      const next = () => {
        const task = isOver ? undefined : waiting.next();
        if (task === undefined || task.done === true) worker.disconnect();
        else worker.send(task.value);
      };
      worker.on("error", reject);
      worker.on("exit", (code, signal) => {
        if (code === 0) resolve();
        else reject(new Error(`a worker ended with ${signal ?? `code ${code}`}`));
      });
      worker.on("message", (outcome) => {
        isOver ||= !onOutcome(outcome as Outcome);
        next();
      });
      next();
    });
  await Promise.all(Array.from({ length: count }, work));
}

/** The worker's side: runs one task after the other, until the program that started it has no more. */
export function serveTasks<Task>(run: (task: Task) => Promise<object>): Promise<void> {
  return new Promise((resolve, reject) => {
    process.on("disconnect", resolve);
    process.on("message", (task) => {
      run(task as Task).then((outcome) => void process.send?.(outcome), reject);
    });
  });
}
