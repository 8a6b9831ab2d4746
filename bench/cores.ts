// Gives half of the cores to Kubernetes and half to the measured program. In production an API server does not
// share its cores with its clients; here, a client that uses more CPU would otherwise take it from the server, and
// the figures would depend on the size of the machine.
import { execFileSync } from "node:child_process";
import { availableParallelism } from "node:os";

export interface Cores {
  /** Runs the function that starts the cluster, so that its processes stay on their half. */
  forCluster<T>(start: () => Promise<T>): Promise<T>;
  /** Printed with the figures. */
  readonly about: string;
}

const shared: Cores = {
  forCluster: (start) => start(),
  about: "the control planes share all cores with what is measured (no taskset here)",
};

/** Keeps this process, and everything that it starts, on the measured half meanwhile. */
export async function withDividedCores<T>(work: (cores: Cores) => Promise<T>): Promise<T> {
  const count = availableParallelism();
  const half = Math.floor(count / 2);
  const cluster = `0-${half - 1}`;
  const measured = `${half}-${count - 1}`;
  if (half === 0 || !moveTo(measured)) return work(shared);
  const divided: Cores = {
    async forCluster(start) {
      moveTo(cluster);
      try {
        return await start();
      } finally {
        moveTo(measured);
      }
    },
    about: `Kubernetes has cores ${cluster}, what is measured has ${measured}, the region's control plane included`,
  };
  try {
    return await work(divided);
  } finally {
    moveTo(`0-${count - 1}`);
  }
}

function moveTo(cores: string): boolean {
  const args = ["--all-tasks", "--cpu-list", "--pid", cores, String(process.pid)];
  try {
    execFileSync("taskset", args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
