// Pods that ask for their secrets: DecryptSecretsBlob over HTTP/1.1 and JSON, as curl sends it.
//
// The rate limits allow a burst of 30 calls per pod and 500 per address, so enough of both are used; every address of
// 127.0.0.0/8 is local.
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";

const callsPerAddress = 400;

/** What each pod sends, in turn. */
export interface PodCalls {
  readonly url: string;
  readonly bodies: readonly string[];
  readonly variables: number;
  readonly callers: number;
}

export class SecretsCallers {
  private readonly options: PodCalls;
  private calls = 0;
  private agent = new Agent();

  constructor(options: PodCalls) {
    this.options = options;
  }

  /** One call from the next pod; resolves with its duration in milliseconds. */
  async call(): Promise<number> {
    const { bodies, variables, callers: maxSockets } = this.options;
    const count = this.calls++;
    if (count % callsPerAddress === 0) {
      const address = count / callsPerAddress;
      const localAddress = `127.1.${address >> 8}.${(address & 255) + 1}`;
      this.agent = new Agent({ keepAlive: true, maxSockets, localAddress });
    }
    const startedMs = performance.now();
    const path = "/krane.v1.SecretsService/DecryptSecretsBlob";
    const answer = await this.send("POST", path, bodies[count % bodies.length]);
    if (Object.keys(JSON.parse(answer).envVars).length !== variables) throw new Error(answer);
    return performance.now() - startedMs;
  }

  /** As many calls one after the other; resolves with their durations. */
  async inTurn(count: number, signal: AbortSignal): Promise<readonly number[]> {
    const latenciesMs: number[] = [];
    for (let done = 0; done < count; done++) {
      signal.throwIfAborted();
      latenciesMs.push(await this.call());
    }
    return latenciesMs;
  }

  /** As many calls by all callers at once. */
  async together(count: number, signal: AbortSignal): Promise<void> {
    const { callers } = this.options;
    await Promise.all(Array.from({ length: callers }, () => this.inTurn(count / callers, signal)));
  }

  async cpuSeconds(): Promise<number> {
    return Number(await this.send("GET", "/cpu"));
  }

  private send(method: string, path: string, body = ""): Promise<string> {
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const to = `${this.options.url}${path}`;
      const call = request(to, { method, headers, agent: this.agent }, (answer) => {
        text(answer).then(
          (got) => (answer.statusCode === 200 ? resolve(got) : reject(new Error(got))),
          reject,
        );
      });
      call.on("error", reject);
      call.end(body);
    });
  }
}
