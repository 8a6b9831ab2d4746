// One case of the contract: a sentence about the API, and the steps that would show it wrong.
// Each case has a namespace of its own and unique names for everything cluster-wide, so that
// cases run in any order, side by side, and repeatedly on a cluster that others use too.
import type { ContractTarget } from "./target.ts";
import { Trial } from "./trial.ts";

export interface ContractCase {
  readonly name: string;
  /** Runs after all others and alone, because it disturbs them. */
  readonly alone?: boolean;
  run(trial: Trial): Promise<void>;
}

export function contractCase(name: string, run: (trial: Trial) => Promise<void>): ContractCase {
  return { name, run };
}

/** Resolves where the target keeps to the case, rejects with the difference where it does not. */
export async function runCase(target: ContractTarget, one: ContractCase): Promise<void> {
  const trial = new Trial(target);
  try {
    await trial.open();
    await one.run(trial);
  } finally {
    await trial.close();
  }
}
