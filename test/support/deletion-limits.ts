import type { DeletionConfig } from "../../src/config/config.ts";

export const deletionBudget = { budgetObjects: 3, budgetFraction: 0.2, budgetWindowMs: 600_000 };

/** The defaults of `[deletion]`. */
export const deletionLimits: DeletionConfig = {
  mode: "confirmed",
  confirmations: 3,
  minimumAgeMs: 300_000,
  ...deletionBudget,
};
