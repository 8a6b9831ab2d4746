// The program that workers.test.ts runs in worker processes.
import { serveTasks } from "../../sim/workers.ts";

await serveTasks(({ number }: { readonly number: number }) => {
  if (number < 0) throw new Error("negative");
  return Promise.resolve({ square: number * number });
});
