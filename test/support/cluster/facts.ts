// What a client needs to know of a running test cluster. Plain data, so that it
// can be handed to test processes in a file.

export interface ClusterFacts {
  readonly serverUrl: string;
  /** PEM; verifies the API server's certificate. */
  readonly ca: string;
  /** Where the same PEM lies as a file. */
  readonly caPath: string;
  readonly adminToken: string;
  readonly kubeconfigPath: string;
  /** The name RBAC and the audit log know the agent by. It has no rights until a test binds a role to it. */
  readonly agentUser: string;
  readonly agentToken: string;
  readonly agentKubeconfigPath: string;
  /** One JSON line per call that is not made by the control plane itself. */
  readonly auditLogPath: string;
  readonly binariesDir: string;
  /** Everything of this cluster lies here and vanishes with it. */
  readonly dir: string;
}
