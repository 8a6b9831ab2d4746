// Everything about one object or app, kept up to date while a view shows it.

import { Code, ConnectError } from "@connectrpc/connect";
import { type Signal, signal } from "@preact/signals";
import {
  type Event,
  type ExplainObjectResponse,
  ObjectKind,
  type RegionNews,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { mergedEvents } from "./events.ts";
import type { Model } from "./model.ts";

const eventsMax = 100;
const changesMax = 30;
const refreshDelayMs = 100;
/** That an agent falls silent is not in the news. */
const reloadEveryMs = 15_000;

export class ObjectData {
  readonly region: string;
  readonly kind: string;
  readonly id: string;
  readonly answer: Signal<ExplainObjectResponse | undefined> = signal(undefined);
  readonly events: Signal<readonly Event[] | undefined> = signal(undefined);
  readonly isMissing = signal(false);
  readonly problem = signal("");
  private readonly model: Model;
  private stopListening: () => void = () => undefined;
  private isDue = false;

  constructor(model: Model, place: { readonly region: string; readonly kind: string; readonly id: string }) {
    this.model = model;
    this.region = place.region;
    this.kind = place.kind;
    this.id = place.id;
  }

  start(): void {
    const stopListening = this.model.onNews((news) => this.hear(news));
    let cancel: () => void = () => undefined;
    const again = () => {
      void this.load();
      cancel = this.model.browser.after(reloadEveryMs, again);
    };
    again();
    this.stopListening = () => {
      stopListening();
      cancel();
    };
  }

  stop(): void {
    this.stopListening();
  }

  private hear(news: readonly RegionNews[]): void {
    // Also the agent's state, and the deployments of an app, decide what is said about it.
    if (this.isDue || !news.some(({ region }) => region === this.region)) return;
    this.isDue = true;
    this.model.browser.after(refreshDelayMs, () => {
      this.isDue = false;
      void this.load();
    });
  }

  async load(): Promise<void> {
    const kind = this.model.kindNamed(this.kind);
    const { api } = this.model;
    if (kind === ObjectKind.UNSPECIFIED) {
      this.isMissing.value = true;
      return;
    }
    const { region, id } = this;
    try {
      const [answer, { events }, changes] = await Promise.all([
        api.explainObject({ ref: { region, kind, id } }),
        api.listEvents({ region, kind, id, limit: eventsMax }),
        // A crash-looping program makes more reports than fit; who changed it must be shown anyway.
        api.listEvents({ region, kind, id, limit: changesMax, changesOnly: true }),
      ]);
      this.answer.value = answer;
      this.events.value = mergedEvents(events, changes.events);
      this.problem.value = "";
    } catch (error) {
      if (this.model.fail(error)) return;
      const { code, rawMessage } = ConnectError.from(error);
      if (code === Code.NotFound || code === Code.InvalidArgument) this.isMissing.value = true;
      else this.problem.value = rawMessage;
    }
  }
}
