// The state of the page, as signals: views read them and are drawn again when they change. All calls to the admin API are here.

import { create } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { batch, computed, effect, type Signal, signal } from "@preact/signals";
import {
  type AdminService,
  type AgentView,
  type KindWords,
  ObjectKind,
  type RegionNews,
  RegionNewsSchema,
  type Session,
  type WatchFleetResponse,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Browser } from "./browser.ts";
import { noFilter, parseRoute, type Route, urlOf } from "./route.ts";
import { ageText } from "./words.ts";

export type Api = Client<typeof AdminService>;

/** Whether what the page shows is the present. */
export type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "lost"; readonly sinceMs: number };

export type SignedIn =
  | { readonly kind: "unknown" }
  | { readonly kind: "out"; readonly reason: string }
  | { readonly kind: "in"; readonly session: Session; readonly kinds: readonly KindWords[] };

/** Longer than the server lets a stream be quiet. */
const quietMaxMs = 12_000;
const refreshDelayMs = 150;

export class Model {
  readonly api: Api;
  readonly browser: Browser;
  readonly route: Signal<Route>;
  readonly signedIn = signal<SignedIn>({ kind: "unknown" });
  readonly connection = signal<Connection>({ kind: "connecting" });
  /** By region; undefined while it is loading. */
  readonly agents = signal<ReadonlyMap<string, AgentView> | undefined>(undefined);
  readonly problem = signal("");
  /** Grows every second, so that ages are drawn again. */
  readonly tick = signal(0);
  private readonly newsListeners = new Set<(news: readonly RegionNews[]) => void>();
  private readonly dueRegions = new Set<string>();
  /** The server's clock minus ours. */
  private aheadMs = 0;
  private heardAtMs = 0;

  constructor(api: Api, browser: Browser, location: { readonly pathname: string; readonly search: string }) {
    this.api = api;
    this.browser = browser;
    this.route = signal<Route>(parseRoute(location));
  }

  readonly kinds = computed(() => {
    const signedIn = this.signedIn.value;
    return signedIn.kind === "in" ? signedIn.kinds : [];
  });

  /** Unspecified for a word that is not a kind. */
  kindNamed(name: string): ObjectKind {
    if (name === "app") return ObjectKind.APP;
    return this.kinds.value.find((each) => each.name === name)?.kind ?? ObjectKind.UNSPECIFIED;
  }

  /** As in URLs. */
  nameOfKind(kind: ObjectKind): string {
    if (kind === ObjectKind.APP) return "app";
    if (kind === ObjectKind.ENVIRONMENT) return "environment";
    return this.kinds.value.find((each) => each.kind === kind)?.name ?? "object";
  }

  /** In the region of the view; in a view of all regions, in each of them. */
  readonly canWrite = computed(() => {
    const { value: signedIn } = this.signedIn;
    if (signedIn.kind !== "in" || !signedIn.session.canWrite) return false;
    const { isLimited, writableRegions } = signedIn.session;
    const { value: route } = this.route;
    return !isLimited || ("region" in route && writableRegions.includes(route.region));
  });

  /** In the region of the view. */
  readonly canReadLogs = computed(() => {
    const { value: signedIn } = this.signedIn;
    if (signedIn.kind !== "in" || !signedIn.session.canReadLogs) return false;
    const { logRegions } = signedIn.session;
    const { value: route } = this.route;
    return logRegions.length === 0 || ("region" in route && logRegions.includes(route.region));
  });

  /** By the server's clock. Read in a view, it draws the view again as time passes. */
  nowMs(): number {
    this.tick.value;
    return this.browser.nowMs() + this.aheadMs;
  }

  /** How long ago by this machine's clock, in words. */
  goneFor(sinceMs: number): string {
    this.tick.value;
    return ageText(sinceMs, this.browser.nowMs());
  }

  start(): void {
    const beat = () => {
      this.tick.value += 1;
      const { value: connection } = this.connection;
      if (connection.kind === "live" && this.browser.nowMs() - this.heardAtMs > quietMaxMs) this.lose();
      this.browser.after(1_000, beat);
    };
    beat();
    effect(() => {
      if (this.signedIn.value.kind === "in") void this.loadAgents();
    });
    void this.loadSession();
  }

  async loadSession(): Promise<void> {
    try {
      const { session, kinds } = await this.api.getSession({});
      if (session !== undefined) this.signedIn.value = { kind: "in", session, kinds };
    } catch (error) {
      this.fail(error, { isFirst: true });
    }
  }

  /** Resolves with what went wrong; empty if nothing did. */
  async signIn(token: string): Promise<string> {
    try {
      await this.api.createSession({}, { headers: { authorization: `Bearer ${token}` } });
    } catch (error) {
      const { code, rawMessage } = ConnectError.from(error);
      return code === Code.Unauthenticated ? "The server does not accept this token." : rawMessage;
    }
    await this.loadSession();
    return "";
  }

  async signOut(): Promise<void> {
    await this.api.endSession({}).catch(() => undefined);
    this.leave("");
  }

  navigate(route: Exclude<Route, { view: "unknown" }>): void {
    history.pushState(null, "", urlOf(route));
    this.route.value = route;
    scrollTo(0, 0);
  }

  /** The same view with another filter: not a new entry for the back button. */
  refine(route: Extract<Route, { view: "region" }>): void {
    history.replaceState(null, "", urlOf(route));
    this.route.value = route;
  }

  regionRoute(region: string, more: Partial<typeof noFilter> = {}): Extract<Route, { view: "region" }> {
    return { view: "region", region, filter: { ...noFilter, ...more } };
  }

  /** Returns a function that stops listening. */
  onNews(listener: (news: readonly RegionNews[]) => void): () => void {
    this.newsListeners.add(listener);
    return () => this.newsListeners.delete(listener);
  }

  hear({ nowMs, regions }: WatchFleetResponse): void {
    this.heardAtMs = this.browser.nowMs();
    this.aheadMs = Number(nowMs) - this.heardAtMs;
    const wasLost = this.connection.value.kind === "lost";
    batch(() => {
      // After a gap, what changed meanwhile is only visible by reading again.
      if (this.connection.value.kind !== "live") {
        this.connection.value = { kind: "live" };
        void this.loadAgents();
      }
      this.noteTimes(regions);
    });
    // What changed meanwhile is not in the news of the new stream.
    const known = [...(this.agents.value?.values() ?? [])];
    const news = wasLost
      ? known.map(({ region, stateAtMs }) =>
          create(RegionNewsSchema, { region, stateAtMs, incomplete: true }),
        )
      : regions;
    for (const listener of this.newsListeners) listener(news);
  }

  /** The stream broke, or nothing was heard for long. */
  lose(): void {
    if (this.connection.value.kind === "lost") return;
    this.connection.value = { kind: "lost", sinceMs: this.heardAtMs || this.browser.nowMs() };
  }

  /** The session has ended, or somebody signed out. */
  leave(reason: string): void {
    batch(() => {
      this.signedIn.value = { kind: "out", reason };
      this.agents.value = undefined;
      this.connection.value = { kind: "connecting" };
    });
  }

  /** Shows an error. True if it is about the session, so that the caller need not show it. */
  fail(error: unknown, { isFirst = false } = {}): boolean {
    const { code, rawMessage } = ConnectError.from(error);
    if (code === Code.Unauthenticated) {
      const wasIn = this.signedIn.value.kind === "in";
      this.leave(isFirst || !wasIn ? "" : "Your session has ended. Sign in again.");
      return true;
    }
    if (isFirst) this.browser.after(2_000, () => void this.loadSession());
    this.problem.value = rawMessage;
    return false;
  }

  private noteTimes(regions: readonly RegionNews[]): void {
    const before = this.agents.value;
    if (before === undefined) return;
    const after = new Map(before);
    for (const { region, heartbeatAtMs, stateAtMs, changed, incomplete } of regions) {
      const agent = after.get(region);
      if (agent !== undefined) after.set(region, { ...agent, heartbeatAtMs });
      if (agent?.stateAtMs !== stateAtMs || changed.length > 0 || incomplete) this.refreshLater(region);
    }
    if (regions.length > 0) this.agents.value = after;
  }

  /** Several messages in a row cost one read. */
  private refreshLater(region: string): void {
    this.dueRegions.add(region);
    if (this.dueRegions.size > 1) return;
    this.browser.after(refreshDelayMs, () => {
      const due = [...this.dueRegions];
      this.dueRegions.clear();
      void this.loadAgents(due.length === 1 ? due[0] : undefined);
    });
  }

  private async loadAgents(region = ""): Promise<void> {
    try {
      const { agents } = await this.api.listAgents({ region });
      const read = agents.map((agent) => [agent.region, agent] as const);
      this.agents.value = new Map(region === "" ? read : [...(this.agents.value ?? []), ...read]);
      this.problem.value = "";
    } catch (error) {
      this.fail(error);
    }
  }
}
