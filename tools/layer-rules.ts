// Turns the table of layers into dependency-cruiser rules, so that a folder, its rule
// and the advice in the rule's message cannot drift apart.
import type { IForbiddenRuleType } from "dependency-cruiser";
import { allowedImports, layers } from "./layers.ts";

const tests = "\\.test\\.ts$";
const productPaths = ["^src/", "^packages/[^/]+/src/"];
const packageUsers = layers.filter((layer) => layer.mayImportPackages).map(({ folder }) => `^src/${folder}/`);

function layerRules(): IForbiddenRuleType[] {
  return layers.map((layer) => {
    const allowed = allowedImports(layer).map((folder) => `^src/${folder}/`);
    if (layer.mayNameKubeTypes) allowed.push("^src/kube/types\\.ts$");
    return {
      name: `layer-${layer.folder}`,
      severity: "error",
      comment: `src/${layer.folder} may not import this: ${layer.instead}`,
      from: { path: `^src/${layer.folder}/`, pathNot: tests },
      to: { path: "^src/", pathNot: allowed },
    };
  });
}

export const forbidden: readonly IForbiddenRuleType[] = [
  ...layerRules(),
  {
    name: "room-without-a-layer",
    severity: "error",
    comment:
      "this folder of src/ has no row in tools/layers.ts: add it to the table, and to docs/architecture.md",
    from: {},
    to: { path: "^src/[^/]+/", pathNot: `^src/(${layers.map((l) => l.folder).join("|")})/` },
  },
  {
    name: "package-stands-alone",
    severity: "error",
    comment:
      "a package in packages/ and its tests must not import krane: take it as an argument, or move it in",
    from: { path: "^packages/" },
    to: { path: "^(src|sim|test|tools|bench)/" },
  },
  {
    name: "package-by-its-name",
    severity: "error",
    comment: "import the package by its name: its other files are internal",
    from: { path: "^(src|sim|test|tools|bench)/" },
    to: { path: "^packages/[^/]+/src/", pathNot: "^packages/[^/]+/src/(index|testing)\\.ts$" },
  },
  {
    name: "package-not-in-production",
    severity: "error",
    comment: "packages/ are for development and tests: production code takes an interface instead",
    from: { path: "^src/", pathNot: [tests, "^src/testing\\.ts$", ...packageUsers] },
    to: { path: "^packages/" },
  },
  {
    name: "kinds-apart",
    severity: "error",
    comment: "kinds do not know one another (K6): move what both need to model/ or to the root of kinds/",
    from: { path: "^src/kinds/([^/]+)/", pathNot: tests },
    to: { path: "^src/kinds/[^/]+/", pathNot: "^src/kinds/$1/" },
  },
  {
    name: "model-is-pure",
    severity: "error",
    comment: "model/ does no I/O: of Node's own modules only node:crypto's hashing is allowed there",
    from: { path: "^src/model/", pathNot: tests },
    to: { dependencyTypes: ["core"], pathNot: "^(node:)?crypto$" },
  },
  {
    name: "no-cycle",
    severity: "error",
    comment:
      "two files that import each other are one idea or three: merge them, or move the shared part out",
    from: {},
    to: { circular: true },
  },
  {
    name: "product-imports-no-test-code",
    severity: "error",
    comment: "src/ must run without sim/, test/, tools/ and bench/: move the shared part into src/",
    from: { path: productPaths, pathNot: tests },
    to: { path: ["^(sim|test|tools|bench)/", "^packages/[^/]+/test/"] },
  },
  {
    name: "simulation-imports-no-test-code",
    severity: "error",
    comment: "sim/ is a program of its own: move the shared part into sim/ or src/",
    from: { path: "^sim/" },
    to: { path: ["^(test|tools|bench)/", "^packages/[^/]+/test/"] },
  },
  {
    name: "product-imports-no-dev-dependency",
    severity: "error",
    comment:
      "this package is in devDependencies: make it a dependency with its reason in docs/dependencies.md",
    from: { path: productPaths, pathNot: tests },
    to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["type-only"] },
  },
  {
    name: "resolvable",
    severity: "error",
    comment: "this import cannot be resolved: check the spelling and the .ts extension",
    from: {},
    to: { couldNotResolve: true },
  },
];
