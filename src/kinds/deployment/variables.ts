// The names of the variables that krane sets in the container of a deployment. A tenant's own variables
// travel inside the encrypted blob, and may not have these names: which of the two the program then
// saw would depend on who wrote last.

export const variables = {
  port: "PORT",
  workspaceId: "UNKEY_WORKSPACE_ID",
  projectId: "UNKEY_PROJECT_ID",
  environmentId: "UNKEY_ENVIRONMENT_ID",
  deploymentId: "UNKEY_DEPLOYMENT_ID",
  encryptedEnvironment: "UNKEY_ENCRYPTED_ENV",
  providerEndpoint: "UNKEY_PROVIDER_ENDPOINT",
  tokenPath: "UNKEY_TOKEN_PATH",
} as const;

export const reservedVariables: ReadonlySet<string> = new Set(Object.values(variables));
