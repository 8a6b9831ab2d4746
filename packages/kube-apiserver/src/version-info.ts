// The Kubernetes release whose behaviour this server follows.

export const versionInfo = {
  major: "1",
  minor: "36",
  gitVersion: "v1.36.0+embedded",
  gitCommit: "",
  gitTreeState: "clean",
  buildDate: "1970-01-01T00:00:00Z",
  goVersion: "",
  compiler: "",
  platform: "",
} as const;
