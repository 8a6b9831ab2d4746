// What a controller is created with.
import type { Clock } from "../concurrency/clock.ts";
import type { Random } from "../concurrency/random.ts";
import type { ControlPlane } from "../control-plane/connection.ts";
import type { ReportingOptions } from "../control-plane/report-order.ts";
import type { KubeApi } from "../kube/api.ts";
import type { Leadership } from "../kube/leadership.ts";
import type { MessageRules } from "../model/message-fields.ts";
import type { Seal } from "../model/seal.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Traced } from "../telemetry/spans.ts";
import type { DeletionGuardOptions } from "./deletion-guard.ts";
import type { DriftTolerance } from "./drift-tolerance.ts";
import type { OrderRecords } from "./order-records.ts";

export interface ControllerOptions {
  readonly rules: MessageRules;
  /** How many keys are reconciled at the same time. */
  readonly workers: number;
  readonly deletion: DeletionGuardOptions;
  /** The fields of others that are left alone; default none. */
  readonly drift?: DriftTolerance;
  /** Default 60 s; 0 switches the resync off, for tests of what must work without it. */
  readonly resyncMs?: number;
  /** How often the stream is replayed from 0. Default 10 min; 0 switches it off. */
  readonly replayMs?: number;
  /** Orders the reports of this process among those of others. Absent: the control plane takes the last one. */
  readonly reporting?: ReportingOptions;
  /** How long start() waits for the watches. Default 60 s. */
  readonly startTimeoutMs?: number;
}

export interface ControllerDeps extends Traced {
  readonly api: KubeApi;
  /** When it may write and report. Absent: always, because this process is alone by assumption. */
  readonly leadership?: Leadership;
  readonly controlPlane: ControlPlane;
  /** Proves which objects are krane's (K4). */
  readonly seal: Seal;
  /** Where orders are kept. Absent: they end with the process. */
  readonly orders?: OrderRecords | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
}
