// Runs one `krane dev` session: polls the region a few times a second and shows what changed, until it is stopped
// or the agent fails. With a screen it also redraws and handles keys.
import { isAbort } from "../concurrency/abort.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import { type Action, actions, runAction } from "./actions.ts";
import { changeLines } from "./change-lines.ts";
import type { DevRegion } from "./dev-region.ts";
import { type DevState, loadDevState } from "./dev-state.ts";
import { renderView, type ViewSize } from "./view.ts";

/** What a session needs from a terminal. */
export interface Screen {
  size(): ViewSize;
  /** Replaces the whole screen with these lines. */
  draw(lines: readonly string[]): void;
}

const lookEveryMs = 200;
// A single failed poll can happen on a busy machine; many in a row mean that the agent is gone.
const failuresMax = 20;
const recentMax = 50;

/** Calls back with every state. Rejects when the agent no longer responds; resolves when the signal aborts. */
async function watchRegion(
  region: DevRegion,
  onState: (state: DevState) => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      onState(await loadDevState(region, signal));
      failures = 0;
    } catch (error) {
      if (isAbort(error, signal)) return;
      failures++;
      if (failures >= failuresMax) throw error;
    }
    await sleep(clock, lookEveryMs, signal).catch(() => undefined);
  }
}

/** Prints one line per change. */
export function runHeadless(
  region: DevRegion,
  print: (line: string) => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let before: DevState | undefined;
  const onState = (state: DevState) => {
    for (const line of changeLines(before, state)) print(line);
    before = state;
  };
  return watchRegion(region, onState, clock, signal);
}

export class LiveSession {
  private readonly region: DevRegion;
  private readonly screen: Screen;
  private readonly clock: Clock;
  private state: DevState | undefined;
  private chosen = "";
  private showsHelp = false;
  private recent: string[] = [];
  private result: string | undefined;
  private pending: Promise<void> = Promise.resolve();

  constructor(region: DevRegion, screen: Screen, clock: Clock) {
    this.region = region;
    this.screen = screen;
    this.clock = clock;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.redraw();
    await watchRegion(this.region, (state) => this.show(state), this.clock, signal);
    await this.pending;
  }

  /** Keys are handled one after the other, so that two quick presses of `+` give two more pods. */
  press(key: string, signal: AbortSignal): void {
    if (this.showsHelp) this.showsHelp = false;
    else if (key === "?" || key === "h") this.showsHelp = true;
    else if (key === "up" || key === "k") this.choose(-1);
    else if (key === "down" || key === "j") this.choose(1);
    else
      this.act(
        actions.find((action) => action.key === (key === "=" ? "+" : key)),
        signal,
      );
    this.redraw();
  }

  redraw(): void {
    const { region, state, chosen, recent, result, showsHelp } = this;
    const { cluster, name, cliContextPath, adminToken } = region;
    const { dashboard, ...others } = region.urls;
    const urls =
      dashboard === undefined ? others : { dashboard, "its token": adminToken.reveal(), ...others };
    const { kubeconfigPath } = cluster;
    const seen = { state, chosen, recent, result, showsHelp };
    const model = { urls, kubeconfigPath, cliContextPath, region: name, ...seen };
    this.screen.draw(renderView(model, this.screen.size()));
  }

  private show(state: DevState): void {
    const lines = changeLines(this.state, state);
    // The first state is in the table already, so it is not an event.
    if (this.state !== undefined) for (const line of lines) this.tell(line);
    this.state = state;
    const ids = this.ids();
    if (!ids.includes(this.chosen)) this.chosen = ids[0] ?? "";
    if (lines.length > 0) this.redraw();
  }

  private choose(by: number): void {
    const ids = this.ids();
    const index = Math.min(Math.max(ids.indexOf(this.chosen) + by, 0), ids.length - 1);
    this.chosen = ids[index] ?? "";
  }

  private act(action: Action | undefined, signal: AbortSignal): void {
    if (action === undefined) return;
    const { chosen } = this;
    this.pending = this.pending.then(async () => {
      try {
        this.result = await runAction(action, this.region, chosen, signal);
      } catch (error) {
        if (isAbort(error, signal)) return;
        this.result = error instanceof Error ? error.message : String(error);
      }
      this.tell(this.result);
      this.redraw();
    });
  }

  private tell(line: string): void {
    this.recent = [...this.recent, line].slice(-recentMax);
  }

  private ids(): readonly string[] {
    return (this.state?.objects ?? []).flatMap(({ id }) => (id === "" ? [] : [id]));
  }
}
