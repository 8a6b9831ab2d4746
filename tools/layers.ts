// The layers of src/, from the top row to the bottom. A folder may import itself and
// the folders of lower rows, nothing else. The import rules, their messages and the
// table in docs/architecture.md all come from here.

export interface Layer {
  readonly folder: string;
  /** What it contains, in a few words. */
  readonly holds: string;
  /** What to do when code here needs something from above or beside it. */
  readonly instead: string;
  /** Folders of the same row that it may import nevertheless. */
  readonly alsoImports?: readonly string[];
  /** The only folders that it may import besides itself, if fewer than all below. */
  readonly onlyImports?: readonly string[];
  /** It may also import kube/types.ts, which contains no code. */
  readonly mayNameKubeTypes?: true;
  /** It may import the packages in packages/, none of which is for production. */
  readonly mayImportPackages?: true;
}

export const rows: readonly (readonly Layer[])[] = [
  [
    {
      folder: "cli",
      holds: "argv to command; the only folder that prints, reads the environment or sets exit codes",
      instead: "nothing imports the command line; move what you need into the folder it is about",
    },
    {
      folder: "library",
      holds: "krane for other programs: what src/index.ts and src/testing.ts export",
      instead: "nothing here imports the library; move what you need into the folder it is about",
      mayImportPackages: true,
    },
  ],
  [
    {
      folder: "dev",
      holds: "never in production: `krane dev`, on the API server of packages/kube-apiserver",
      instead: "production code takes an interface and gets the development part handed in by cli or a test",
      mayImportPackages: true,
    },
    {
      folder: "doctor",
      holds: "looks for what would keep an agent from working, and says what to do",
      instead: "checks look on from outside; let cli join them with what runs",
    },
  ],
  [
    {
      folder: "agent",
      holds: "composition root: configuration and deps to everything wired; start and stop order",
      instead: "lower folders receive what they need as deps from the composition root",
    },
    {
      folder: "server",
      holds: "the reference control plane",
      instead: "agent and server meet only on the wire; share a lower folder, never each other",
    },
  ],
  [
    {
      folder: "runtime",
      holds:
        "a running process: steps that start in order and stop in reverse, with the steps that all processes share",
      instead: "hand the runtime a step; it does not know what a program is made of",
    },
  ],
  [
    {
      folder: "services",
      holds: "the RPC services that krane serves: secrets, scheduler, agent, vault",
      instead: "pass the state that a service shows as an argument",
    },
    {
      folder: "dashboard",
      holds: "what a browser sees: the page, and how a port serves it",
      instead: "the page knows only the admin API; add what it lacks there",
    },
  ],
  [
    {
      folder: "why",
      holds: "explains why an object is not ready and what to do, as pure functions",
      instead:
        "explanations are pure: they may import model, kinds and gen only; take everything else as an argument",
      onlyImports: ["model", "kinds", "gen"],
    },
  ],
  [
    {
      folder: "kinds",
      holds: "one folder per kind of desired state: its descriptor, and what only that kind knows",
      instead: "hand the kind a function in its deps",
    },
  ],
  [
    {
      folder: "engine",
      holds: "the loop, written once for all kinds: store, queue, reconcile, apply, guard, resync, reporter",
      instead: "the engine knows no kind; let the kind's descriptor say it",
    },
    {
      folder: "documents",
      holds: "the language of the files that people write, whatever kind they describe, as pure functions",
      instead:
        "documents are pure and know no kind: they may import model, gen and config only; take everything else as an argument",
      onlyImports: ["model", "gen", "config"],
    },
  ],
  [
    {
      folder: "control-plane",
      holds: "the Connect client: transport, authentication, desired streams, calls",
      instead: "let the controller join the two; peers of this row do not know each other",
    },
    {
      folder: "vault",
      holds: "envelope encryption and its storage",
      instead: "let the service join the two; peers of this row do not know each other",
    },
    {
      folder: "kube",
      holds: "the generic Kubernetes client, reflector and cache",
      instead: "keep krane's meaning out of kube/; model/, engine/ and kinds/ give it",
    },
    {
      folder: "http",
      holds: "the server side of a port: HTTP/1.1, h2c, TLS, limits, health endpoints",
      instead: "hand the port a request handler; it does not know what it serves",
    },
    {
      folder: "model",
      holds: "what several kinds share, pure: labels, names, quantities, ownership",
      instead: "model is pure: it may import gen and kube/types.ts only; take everything else as an argument",
      onlyImports: ["gen"],
      mayNameKubeTypes: true,
    },
  ],
  [
    {
      folder: "config",
      holds: "file text, environment and flags to a frozen Config; pure",
      instead: "configuration does not know its readers; convert at the composition root",
      alsoImports: ["errors"],
    },
    {
      folder: "telemetry",
      holds: "logs, metrics, traces",
      instead: "telemetry is told things; pass names and numbers, not objects of higher layers",
      alsoImports: ["concurrency"],
    },
    {
      folder: "concurrency",
      holds: "clock, random, back-off, work queue, circuit breaker, supervisor",
      instead: "keep these free of krane's meaning; take a function as an argument",
      alsoImports: ["errors"],
    },
    {
      folder: "errors",
      holds: "every error code with its meaning and remedy; the base class of coded errors",
      instead:
        "errors holds a table and a base class; put code that throws or handles an error into the folder it is about",
    },
    {
      folder: "gen",
      holds: "code generated from proto/, never edited",
      instead: "change the .proto file and run `make gen`",
    },
  ],
];

export const layers: readonly Layer[] = rows.flat();

/** Every folder that the given one may import, itself included. */
export function allowedImports(layer: Layer): readonly string[] {
  if (layer.onlyImports) return [layer.folder, ...layer.onlyImports];
  const row = rows.findIndex((candidates) => candidates.includes(layer));
  const below = rows.slice(row + 1).flatMap((lower) => lower.map((l) => l.folder));
  return [layer.folder, ...(layer.alsoImports ?? []), ...below];
}
