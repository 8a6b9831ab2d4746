// The connection of an agent to the control plane, over a simulated network. It works as the innermost interceptor, so
// that a response that is lost on the way is seen by nothing in the agent.
import type { Interceptor, StreamResponse, Transport, UnaryResponse } from "@connectrpc/connect";
import { Code, ConnectError } from "@connectrpc/connect";
import { linkSignals } from "../src/concurrency/abort.ts";
import { onAbort } from "../src/concurrency/abort-listener.ts";
import type { Link as ControlPlaneLink } from "../src/control-plane/transport.ts";
import type { Link } from "./link.ts";
import { MessageQueue } from "./message-queue.ts";
import type { SimProcess } from "./sim-process.ts";

export interface PlaneServer {
  createTransport(interceptors: readonly Interceptor[]): Transport;
}

export interface PlaneLinkDeps {
  readonly process: SimProcess;
  readonly link: Link;
  /** The server that answers now; undefined if none does. */
  answering(): PlaneServer | undefined;
}

export function createPlaneLink(deps: PlaneLinkDeps, interceptors: readonly Interceptor[]): ControlPlaneLink {
  const { process, link } = deps;
  const transports = new WeakMap<PlaneServer, Transport>();
  const closing = new AbortController();
  const networkTo =
    (server: PlaneServer): Interceptor =>
    (next) =>
    async (request) => {
      // The server's deadline would run on the real clock.
      request.header.delete("Connect-Timeout-Ms");
      const linked = linkSignals(request.signal, closing.signal, process.gone);
      const way = { link, process, signal: linked.signal, what: request.method.name };
      await hop(way, "request");
      // It may arrive long after it was sent.
      if (deps.answering() !== server) throw new ConnectError("connection reset", Code.Unavailable);
      const response = await next({ ...request, signal: linked.signal });
      await hop(way, "response");
      if (!response.stream) {
        linked.release();
        return response;
      }
      return { ...response, message: received(response, request.method.name, deps, linked) };
    };
  const current = (): Transport => {
    const server = deps.answering();
    if (server === undefined) throw new ConnectError("connection refused", Code.Unavailable);
    const transport = transports.get(server) ?? server.createTransport([...interceptors, networkTo(server)]);
    transports.set(server, transport);
    return transport;
  };
  return {
    transport: {
      unary: async (...call): Promise<UnaryResponse<never, never>> =>
        (await current().unary(...call)) as UnaryResponse<never, never>,
      stream: async (...call): Promise<StreamResponse<never, never>> =>
        (await current().stream(...call)) as StreamResponse<never, never>,
    } as Transport,
    generation: 1,
    close: async () => closing.abort(new ConnectError("the connection was closed", Code.Canceled)),
  };
}

interface Way {
  readonly link: Link;
  readonly process: SimProcess;
  readonly signal: AbortSignal;
  /** For the trace of a plan. */
  readonly what: string;
}

/** One message on its way. A lost one keeps its caller waiting until that gives up. */
function hop({ link, process, signal, what }: Way, point: "request" | "response"): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const fate = link.fateOf(point, what);
    signal.throwIfAborted();
    const stopListening = onAbort(signal, () => reject(signal.reason));
    const arrived = () => {
      stopListening();
      resolve();
    };
    if (fate?.kind === "lose") return;
    const deliver = () => (point === "request" ? arrived() : void process.wake(arrived));
    link.carry(deliver, link.notBefore(fate));
  });
}

/** The messages of a stream, as they arrive at the process. */
function received<M>(
  { message }: { readonly message: AsyncIterable<M> },
  what: string,
  { process, link }: PlaneLinkDeps,
  connection: ReturnType<typeof linkSignals>,
): AsyncIterable<M> {
  let lastDueMs = 0;
  const arrive = (deliver: () => void) => {
    lastDueMs = link.carry(() => process.wake(deliver), lastDueMs);
  };
  const queue = new MessageQueue<M>(() => stop());
  const forget = link.open({
    cut: (how) =>
      process.wake(() =>
        stop(how === "end" ? undefined : new ConnectError("connection reset", Code.Unavailable)),
      ),
  });
  const stop = (error?: ConnectError) => {
    if (error === undefined) queue.end();
    else queue.break(error);
    forget();
    connection.abort();
  };
  const sent: M[] = [];
  const send = async () => {
    try {
      for await (const each of message) {
        const fate = link.fateOf("event", what);
        if (fate?.kind === "cut")
          return arrive(() => stop(new ConnectError("cut inside a message", Code.Unavailable)));
        lastDueMs = Math.max(lastDueMs, link.eventNotBefore(fate));
        sent.push(each);
        const isReplayed = link.choices.chance(link.weather.replayRate);
        for (const one of isReplayed ? [each, ...sent] : [each]) arrive(() => queue.push(one));
      }
      arrive(() => stop());
    } catch (error) {
      const cause = ConnectError.from(error);
      if (!connection.signal.aborted) arrive(() => stop(cause));
      else queue.break(cause);
    }
  };
  void send();
  return queue;
}
