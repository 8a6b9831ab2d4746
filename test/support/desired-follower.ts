// A client that follows the deployments of a region as an agent does: over any number of
// connections, from its own cursor, and honouring what it is told about coming back.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { retryHintMs } from "../../src/control-plane/error.ts";
import { ClusterService } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import type { DeploymentState } from "../../src/gen/ctrl/v1/deployment_pb.ts";

export interface FollowerOptions {
  /** Asked before each connection. */
  url(): string;
  readonly region: string;
  readonly token: string;
}

export class DesiredFollower {
  /** By deployment id. */
  readonly images = new Map<string, { readonly version: bigint; readonly image: string }>();
  readonly imagesByVersion = new Map<bigint, string>();
  cursor = 0n;
  connections = 0;
  /** Why the last connection ended. */
  lastError: ConnectError | undefined;
  /** How often it was told to come later. */
  hints = 0;
  private readonly options: FollowerOptions;
  private readonly waiting = new Set<() => void>();

  constructor(options: FollowerOptions) {
    this.options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const error = await this.follow(signal);
      this.lastError = error;
      if (signal.aborted) return;
      assert.notEqual(error?.code, Code.OutOfRange, "the counter went back");
      const hintMs = error && retryHintMs(error);
      if (hintMs !== undefined) this.hints += 1;
      await delay(hintMs ?? 100, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves with the next state that arrives. */
  nextState(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.add(resolve);
    });
  }

  private async follow(signal: AbortSignal): Promise<ConnectError | undefined> {
    const { url, region, token } = this.options;
    const baseUrl = url();
    const sessionManager = new Http2SessionManager(baseUrl);
    const send: Interceptor = (next) => (request) => {
      request.header.set("authorization", `Bearer ${token}`);
      return next(request);
    };
    const transport = createConnectTransport({
      baseUrl,
      httpVersion: "2",
      sessionManager,
      interceptors: [send],
    });
    const client = createClient(ClusterService, transport);
    this.connections += 1;
    try {
      const request = { region, versionLastSeen: this.cursor };
      for await (const state of client.watchDeployments(request, { signal })) this.take(state);
      return undefined;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      return ConnectError.from(error);
    } finally {
      sessionManager.abort();
    }
  }

  private take(state: DeploymentState): void {
    const { version } = state;
    assert.ok(version > this.cursor, `version ${version} came after ${this.cursor}`);
    this.cursor = version;
    if (state.state.case !== "apply") return;
    const { deploymentId, image } = state.state.value;
    const before = this.imagesByVersion.get(version);
    assert.ok(before === undefined || before === image, `version ${version} was ${before} and is ${image}`);
    this.imagesByVersion.set(version, image);
    this.images.set(deploymentId, { version, image });
    for (const wake of this.waiting) wake();
    this.waiting.clear();
  }
}
