// How kwok plays the kubelet: a node becomes Ready when it appears, a pod
// becomes Running and Ready when it is scheduled, and goes when it is deleted. Pods of
// one namespace have a log: a file that tests append to.
//
// A stage acts on a pod only in phase Pending without a failing container, so a
// test may write any other status itself and it stays.

const nodeReady = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: node-ready }
spec:
  resourceRef: { apiGroup: v1, kind: Node }
  selector:
    matchExpressions:
      - { key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: NotIn, values: ["True"] }
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Running
      addresses:
      - type: InternalIP
        address: {{ NodeIP | Quote }}
      daemonEndpoints:
        kubeletEndpoint:
          Port: {{ NodePort }}
      conditions:
      {{ range NodeConditions }}
      - type: {{ .type | Quote }}
        status: {{ .status | Quote }}
        reason: {{ .reason | Quote }}
        message: {{ .message | Quote }}
        lastHeartbeatTime: {{ $now | Quote }}
        lastTransitionTime: {{ $now | Quote }}
      {{ end }}
`;

const podReady = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: pod-ready }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchExpressions:
      - { key: .metadata.deletionTimestamp, operator: DoesNotExist }
      - { key: .status.phase, operator: In, values: [Pending] }
      - { key: '.status.containerStatuses.[].state.waiting.reason', operator: DoesNotExist }
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Running
      startTime: {{ $now | Quote }}
      conditions:
      {{ range $type := list "Initialized" "ContainersReady" "Ready" }}
      - type: {{ $type }}
        status: "True"
        lastTransitionTime: {{ $now | Quote }}
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        imageID: ""
        ready: true
        started: true
        restartCount: 0
        state:
          running:
            startedAt: {{ $now | Quote }}
      {{ end }}
      {{ with PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace }}
      podIP: {{ index . 0 | Quote }}
      podIPs:
      {{ range . }}
      - ip: {{ . | Quote }}
      {{ end }}
      {{ end }}
`;

const podGone = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: { name: pod-gone }
spec:
  resourceRef: { apiGroup: v1, kind: Pod }
  selector:
    matchExpressions:
      - { key: .metadata.deletionTimestamp, operator: Exists }
  next:
    delete: true
`;

/** Lines as containerd writes them: `2026-01-01T00:00:00.000000001Z stdout F text`. The path is inside the cluster's folder. */
export const printedLog = { namespace: "printing", path: "printed.log" } as const;

const podLogs = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: { name: printed }
spec:
  selector: { matchNamespaces: [${printedLog.namespace}] }
  logs:
    - logsFile: ./${printedLog.path}
      follow: true
`;

export const kwokStages = [nodeReady, podReady, podGone, podLogs].join("---");
