// The connections to one API server: a pool for single requests, and one connection of its own
// for each watch.
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

// Shorter than the 90 s after which the API server hangs up, and than what load balancers allow, so
// that a request rarely meets a connection that is just being closed.
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

  /** Whoever opened it gives it back with `drop`. */
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
   * Certificate and CA belong to the connection, not to the request, so new ones need new
   * connections. The old ones finish what they carry.
   */
  private generationOf(credential: Credential): Generation {
    if (this.closed) throw new KubeApiError("network", "the Kubernetes client is closed");
    const present = this.generation;
    const cert = credential.certificate?.cert;
    const ca = this.options.endpoint.ca && pemOf(this.options.endpoint.ca);
    if (present !== undefined && present.cert === cert && present.ca === ca) return present;
    // Before the old ones are given up: a certificate that is half written would otherwise leave none.
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
      // Read once: the first of many changes opens all connections together, each of which would read it again.
      ...(this.isEncrypted && { secureContext: secureContextOf(ca, certificate) }),
      ...(endpoint.serverName === undefined ? {} : { servername: endpoint.serverName }),
      ...(endpoint.insecureSkipTlsVerify === true ? { rejectUnauthorized: false } : {}),
    });
    const pool = new Pool(this.origin, {
      connect,
      connections,
      keepAliveTimeout: keepAliveMs,
      keepAliveMaxTimeout: keepAliveMs,
      // The deadline of the whole exchange covers both, and is under the caller's clock.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return { cert: certificate?.cert, ca, pool, connect };
  }
}

function secureContextOf(ca: string | undefined, certificate: Credential["certificate"]): SecureContext {
  try {
    return createSecureContext({ ca, ...certificate });
  } catch (cause) {
    const message = "the client certificate and its key cannot be used, or do not belong together";
    throw new KubeApiError("credentials", message, { cause });
  }
}
