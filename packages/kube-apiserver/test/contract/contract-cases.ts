// The whole contract, area by area.
import { applyConflictCases } from "./cases/apply-conflicts.ts";
import { applyOwnershipCases } from "./cases/apply-ownership.ts";
import { applyRequestCases } from "./cases/apply-requests.ts";
import { controllerCases } from "./cases/controllers.ts";
import { creatingCases } from "./cases/creating.ts";
import { customResourceCases } from "./cases/custom-resources.ts";
import { defaultCases } from "./cases/defaults.ts";
import { deletingCases } from "./cases/deleting.ts";
import { discoveryCases } from "./cases/discovery.ts";
import { garbageCollectionCases } from "./cases/garbage-collection.ts";
import { nameCases } from "./cases/names.ts";
import { pagingCases } from "./cases/paging.ts";
import { patchingCases } from "./cases/patching.ts";
import { readingCases } from "./cases/reading.ts";
import { recordCases } from "./cases/records.ts";
import { selectorCases } from "./cases/selectors.ts";
import { subresourceCases } from "./cases/subresources.ts";
import { tokenCases } from "./cases/tokens.ts";
import { updatingCases } from "./cases/updating.ts";
import { validationCases } from "./cases/validation.ts";
import { watchStartCases } from "./cases/watch-starts.ts";
import { watchingCases } from "./cases/watching.ts";
import type { ContractCase } from "./contract-case.ts";

export const contractCases: readonly ContractCase[] = [
  ...readingCases,
  ...nameCases,
  ...creatingCases,
  ...applyOwnershipCases,
  ...applyConflictCases,
  ...applyRequestCases,
  ...updatingCases,
  ...patchingCases,
  ...deletingCases,
  ...garbageCollectionCases,
  ...selectorCases,
  ...pagingCases,
  ...watchingCases,
  ...watchStartCases,
  ...subresourceCases,
  ...tokenCases,
  ...customResourceCases,
  ...defaultCases,
  ...validationCases,
  ...discoveryCases,
  ...recordCases,
  ...controllerCases,
];
