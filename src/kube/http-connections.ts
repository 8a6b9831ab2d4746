// The connections to one API server: a pool for single requests, and a separate connection for each watch.
import { connect as connectTcp, type Socket } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { buildConnector, Client, Pool } from "undici";
import { pemOf } from "../config/ca-file.ts";
import type { Credential, KubeEndpoint } from "./credentials.ts";
import { KubeApiError } from "./errors.ts";

export interface ConnectionOptions {
  readonly endpoint: KubeEndpoint;
  readonly connections: number;
  readonly connectTimeoutMs: number;
  readonly watchSilenceMs: number;
}

// Shorter than the 90 s after which the API server closes a connection, and than the limits of load balancers, so that
// a request rarely uses a connection that is just being closed.
const keepAliveMs = 30_000;

interface Generation {
  readonly cert: string | undefined;
  readonly ca: string | undefined;
  readonly pool: Pool;
  readonly connect: buildConnector.connector;
}

export class HttpConnections {
  private readonly options: ConnectionOptions;
  private readonly origin: string;
  private readonly isEncrypted: boolean;
  private readonly open = new Set<Pool | Client>();
  private generation: Generation | undefined;
  private closed = false;

  constructor(options: ConnectionOptions) {
    this.options = options;
    const { origin, protocol } = new URL(options.endpoint.server);
    this.origin = origin;
    this.isEncrypted = protocol === "https:";
  }

  poolFor(credential: Credential): Pool {
    return this.generationOf(credential).pool;
  }

  /** The caller must close it with `drop`. */
  openClient(credential: Credential): Client {
    const { connect } = this.generationOf(credential);
    const client = new Client(this.origin, {
      connect,
      headersTimeout: 0,
      bodyTimeout: this.options.watchSilenceMs,
    });
    this.open.add(client);
    return client;
  }

  async drop(client: Client): Promise<void> {
    this.open.delete(client);
    await client.destroy();
  }

  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.open].map((one) => one.destroy()));
    this.open.clear();
  }

  /**
   * Certificate and CA belong to a connection, not to a request, so new ones need new connections. The old connections
   * finish their requests.
   */
  private generationOf(credential: Credential): Generation {
    if (this.closed) throw new KubeApiError("network", "the Kubernetes client is closed");
    const present = this.generation;
    const cert = credential.certificate?.cert;
    const ca = this.options.endpoint.ca && pemOf(this.options.endpoint.ca);
    if (present !== undefined && present.cert === cert && present.ca === ca) return present;
    // Before the old pool is closed, because a half-written certificate throws here and must not leave krane without one.
    const made = this.createGeneration(credential, ca);
    if (present !== undefined) {
      const retired = () => void this.open.delete(present.pool);
      present.pool.close().then(retired, retired);
    }
    this.generation = made;
    this.open.add(made.pool);
    return made;
  }

  private createGeneration({ certificate }: Credential, ca: string | undefined): Generation {
    const { endpoint, connections, connectTimeoutMs } = this.options;
    const connect = buildConnector({
      timeout: connectTimeoutMs,
      // Created once: when many connections are opened together, each would parse the certificates again.
      ...(this.isEncrypted && { secureContext: secureContextOf(ca, certificate) }),
      ...(endpoint.serverName === undefined ? {} : { servername: endpoint.serverName }),
      ...(endpoint.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
    });
    const pool = new Pool(this.origin, {
      connect: this.resetOnFailure(connect),
      connections,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      // The deadline of the whole exchange covers both, and uses the injected clock.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return { cert: certificate?.cert, ca, pool, connect };
  }

  /**
   * Resets a connection whose request was given up. If it were closed, the kernel would go on trying to deliver the
   * request, and a write could reach the server long after its lease has expired (K13).
   */
  private resetOnFailure(connect: buildConnector.connector): buildConnector.connector {
    return (options, callback) => {
      const { hostname: host, port } = options;
      // Only a TCP socket can be reset, so TLS runs on one that is known here.
      const tcp = this.isEncrypted ? connectTcp({ host, port: Number(port || 443) }) : undefined;
      connect({ ...options, ...(tcp && { httpSocket: tcp }) }, (...[error, socket]) => {
        if (error !== null) return callback(error, null);
        resetWhenDestroyed(socket, tcp ?? socket);
        callback(null, socket);
      });
    };
  }
}

function resetWhenDestroyed(socket: Socket, tcp: Socket): void {
  const destroy = socket.destroy.bind(socket);
  let isResetting = false;
  socket.destroy = (error) => {
    if (isResetting) return socket;
    // An incomplete request needs no reset: the server does not act on it.
    const isSent = socket.writableLength === 0 && tcp.writableLength === 0;
    if (error === undefined || !isSent || socket.destroyed || tcp.destroyed) return destroy(error);
    if (tcp === socket) {
      tcp.resetAndDestroy();
      return destroy(error);
    }
    // TLS ends after TCP has closed, however often it is told to. If it ended before, Node would free the TLS state at
    // once, because TCP has no handle any more; if it is just reading from that state, the process crashes.
    isResetting = true;
    tcp.once("close", () => destroy(error));
    tcp.resetAndDestroy();
    return socket;
  };
}

function secureContextOf(ca: string | undefined, certificate: Credential["certificate"]): SecureContext {
  try {
    return createSecureContext({ ca, ...certificate });
  } catch (cause) {
    const message = "the client certificate and its key are invalid, or do not match";
    throw new KubeApiError("credentials", message, { cause });
  }
}
