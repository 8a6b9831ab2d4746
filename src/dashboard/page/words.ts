// What states, events, ages and counts are called. Pure.
import { ReportDeploymentStatusRequest_Update_Instance_Status as PodStatus } from "../../gen/ctrl/v1/deployment_pb.ts";
import {
  type AgentView,
  type AppView,
  type Event,
  type KindWords,
  type ObjectView,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type Release, Release_Phase as ReleasePhase } from "../../gen/krane/admin/v1/app_pb.ts";
import { heardAtMs, isSilent } from "../../why/silence.ts";

/** "calm" is for what is over or paused. */
export type Tone = "good" | "busy" | "bad" | "calm";

export interface Word {
  readonly text: string;
  readonly tone: Tone;
}

const word = (text: string, tone: Tone): Word => ({ text, tone });

const phases: Readonly<Record<Phase, Word>> = {
  [Phase.UNSPECIFIED]: word("Unknown", "bad"),
  [Phase.WAITING]: word("Waiting", "busy"),
  [Phase.PROGRESSING]: word("Progressing", "busy"),
  [Phase.READY]: word("Ready", "good"),
  [Phase.PAUSED]: word("Paused", "calm"),
  [Phase.FAILED]: word("Failed", "bad"),
  [Phase.DELETING]: word("Deleting", "busy"),
  [Phase.DELETED]: word("Deleted", "calm"),
};

export function phaseWord(phase: Phase): Word {
  return phases[phase] ?? phases[Phase.UNSPECIFIED];
}

const releasePhases: Readonly<Record<ReleasePhase, Word>> = {
  [ReleasePhase.UNSPECIFIED]: word("Unknown", "bad"),
  [ReleasePhase.STARTING]: word("Starting", "busy"),
  [ReleasePhase.CURRENT]: word("Current", "good"),
  [ReleasePhase.DRAINING]: word("Draining", "busy"),
  [ReleasePhase.RETIRED]: word("Retired", "calm"),
  [ReleasePhase.FAILED]: word("Failed", "bad"),
  [ReleasePhase.SUPERSEDED]: word("Superseded", "calm"),
};

export function releaseWord(phase: ReleasePhase): Word {
  return releasePhases[phase] ?? releasePhases[ReleasePhase.UNSPECIFIED];
}

/** The release that says how its app is. */
export function tellingRelease(view: AppView | undefined): Release | undefined {
  const releases = view?.app?.releases ?? [];
  const newest = releases.at(-1);
  // A release that was replaced says nothing about the app.
  if (newest?.phase === ReleasePhase.FAILED || newest?.phase === ReleasePhase.STARTING) return newest;
  return releases.find(({ phase }) => phase === ReleasePhase.CURRENT) ?? newest;
}

export function appWord(view: AppView | undefined): Word {
  const release = tellingRelease(view);
  const { text, tone } = releaseWord(release?.phase ?? ReleasePhase.UNSPECIFIED);
  return { text: release === undefined ? text : `Release ${release.number} ${text.toLowerCase()}`, tone };
}

const podStates: Readonly<Record<PodStatus, Word>> = {
  [PodStatus.UNSPECIFIED]: word("Unknown", "bad"),
  [PodStatus.PENDING]: word("Pending", "busy"),
  [PodStatus.RUNNING]: word("Running", "good"),
  [PodStatus.FAILED]: word("Failed", "bad"),
};

export function podWord(status: PodStatus): Word {
  return podStates[status] ?? podStates[PodStatus.UNSPECIFIED];
}

/** Causes of `krane why` that need nothing but time. */
const calmCauses: Readonly<Record<string, Tone>> = {
  "all-well": "good",
  "changed-by-cluster": "good",
  paused: "calm",
  deleted: "calm",
  starting: "busy",
  "surplus-pods": "busy",
  "not-settled": "busy",
  "deletion-in-progress": "busy",
  releasing: "busy",
  "releases-paused": "busy",
};

export function causeTone(cause: string): Tone {
  return Object.hasOwn(calmCauses, cause) ? (calmCauses[cause] ?? "bad") : "bad";
}

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** The largest unit and, below ten of it, the next one: `2m 5s`, `14m`, `3h`. */
export function ageText(fromMs: number, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - fromMs);
  const first = units.findIndex(([, ms]) => ageMs >= ms);
  if (first < 0) return "now";
  const [unit, unitMs] = units[first] ?? units[3];
  const count = Math.floor(ageMs / unitMs);
  const [nextUnit, nextMs] = units[first + 1] ?? [];
  const rest = nextMs === undefined ? 0 : Math.floor((ageMs % unitMs) / nextMs);
  return count < 10 && rest > 0 ? `${count}${unit} ${rest}${nextUnit}` : `${count}${unit}`;
}

export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : several}`;
}

/** In the cluster. */
export function objectName({ namespace, name }: ObjectView): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

/** As its releases are named, without their numbers. */
export function appName({ app }: AppView): string {
  const { k8sNamespace = "", k8sName = "" } = app?.spec?.template ?? {};
  return `${k8sNamespace}/${k8sName}`;
}

/** For a kind whose reports only count its pods: how many are available, and their image. Undefined without a report. */
export function availablePods({ sentinel }: ObjectView) {
  return sentinel && { count: sentinel.availableReplicas, image: sentinel.runningImage };
}

/** How many pods are ready and wanted; undefined for an object without pods. */
export function podCounts(
  { spec, deployment, sentinel }: ObjectView,
  hasPods: boolean,
): { readonly ready: number; readonly wanted: number } | undefined {
  const described = spec?.spec.value;
  if (!hasPods || described === undefined || !("replicas" in described)) return undefined;
  const running = deployment?.instances.filter(({ status }) => status === PodStatus.RUNNING).length;
  return { ready: sentinel?.availableReplicas ?? running ?? 0, wanted: described.replicas };
}

/** A field that the specs of several kinds have. */
export function specText({ spec }: ObjectView, field: "image" | "environmentId"): string {
  const described = spec?.spec.value;
  if (described === undefined) return "";
  const value: unknown = field in described ? Reflect.get(described, field) : "";
  return typeof value === "string" ? value : "";
}

export function troubleText({ trouble }: ObjectView): string {
  return trouble?.reason || trouble?.failing || "";
}

/** How many versions the agent is behind, over all kinds. */
export function lagOf({ state, newestVersions }: AgentView, kinds: readonly KindWords[]): number {
  return newestVersions.reduce((sum, { kind, version }) => {
    const name = kinds.find((each) => each.kind === kind)?.controller;
    const stream = state?.controllers.find((each) => each.name === name)?.stream;
    const { cursor = 0n, settledUpTo = 0n } = stream ?? {};
    const done = cursor > settledUpTo ? cursor : settledUpTo;
    return version > done ? sum + Number(version - done) : sum;
  }, 0);
}

/** How the agent of a region is. */
export function agentWord(agent: AgentView, nowMs: number): Word {
  const heard = heardAtMs(agent);
  if (heard === 0n) return word("No agent has connected", "bad");
  const age = ageText(Number(heard), nowMs);
  if (isSilent(agent, nowMs)) return word(`Last heard ${age} ago`, "bad");
  return word(age === "now" ? "Heard just now" : `Heard ${age} ago`, "good");
}

const events: Readonly<Record<string, Word>> = {
  set: { text: "changed the desired state", tone: "calm" },
  stopped: { text: "ordered its deletion", tone: "busy" },
  removed: { text: "removed it", tone: "busy" },
  reported: { text: "reported:", tone: "calm" },
  troubled: { text: "reported trouble:", tone: "bad" },
  recovered: { text: "reported that it recovered", tone: "good" },
  repaired: { text: "put back what somebody else had changed:", tone: "busy" },
  released: { text: "allowed its deletion", tone: "busy" },
  adopted: { text: "allowed its adoption", tone: "busy" },
  secret_set: { text: "set the secret", tone: "calm" },
  secret_unset: { text: "removed the secret", tone: "calm" },
  paused: { text: "paused its releases", tone: "busy" },
  resumed: { text: "resumed its releases", tone: "calm" },
  release_started: { text: "started", tone: "busy" },
  release_current: { text: "made current:", tone: "good" },
  release_draining: { text: "is draining", tone: "busy" },
  release_failed: { text: "gave up", tone: "bad" },
  release_ended: { text: "ended", tone: "calm" },
};

/** A newer server may record events that this page does not know. */
export function eventText({ event }: Event): Word {
  return Object.hasOwn(events, event) ? (events[event] ?? unknown(event)) : unknown(event);
}

function unknown(event: string): Word {
  return { text: event, tone: "calm" };
}
