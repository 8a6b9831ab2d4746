{{- /* Objects that all three parts have. Each takes the root and the part. */ -}}

{{- define "krane.configMap" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "krane.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "krane.labels" . | nindent 4 }}
data:
  krane.toml: |
    {{- include "krane.configFile" . | nindent 4 }}
{{- end -}}

{{- /* Only the agent talks to Kubernetes. */ -}}
{{- define "krane.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "krane.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "krane.labels" . | nindent 4 }}
automountServiceAccountToken: false
{{- end -}}

{{- define "krane.service" -}}
{{- $values := get .root.Values .part -}}
{{- $service := $values.service | default dict -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "krane.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "krane.labels" . | nindent 4 }}
  {{- with $service.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ $service.type | default "ClusterIP" }}
  selector: {{- include "krane.selector" . | nindent 4 }}
  ports:
    # Metrics are scraped from each pod, not through the Service.
    - { name: rpc, port: {{ include "krane.port" .part }}, targetPort: rpc }
{{- end -}}

{{- define "krane.disruptionBudget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "krane.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "krane.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "krane.selector" . | nindent 6 }}
{{- end -}}

{{- define "krane.podMonitor" -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ include "krane.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "krane.labels" . | nindent 4 }}
    {{- with .root.Values.podMonitor.labels }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  selector:
    matchLabels: {{- include "krane.selector" . | nindent 6 }}
  podMetricsEndpoints:
    - port: metrics
      {{- if ne .part "server" }}
      # A server has many regions.
      relabelings:
        - { targetLabel: region, replacement: {{ .root.Values.region | quote }} }
      {{- end }}
{{- end -}}

{{- /* `args`: the command. `mounts` and `volumes`: those of this part in addition to its configuration and its Secrets. */ -}}
{{- define "krane.podTemplate" -}}
{{- $values := get .root.Values .part -}}
{{- $scheme := include "krane.scheme" . | upper -}}
metadata:
  labels: {{- include "krane.labels" . | nindent 4 }}
  annotations:
    krane.unkey.com/config-hash: {{ include "krane.configFile" . | sha256sum }}
    {{- with $values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "krane.name" . }}
  automountServiceAccountToken: {{ eq .part "agent" }}
  # Service links would set variables that can look like settings of krane.
  enableServiceLinks: false
  # krane itself gives up after 30 seconds, and logs what hangs.
  terminationGracePeriodSeconds: 45
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: { type: RuntimeDefault }
  {{- with .root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if gt (int ($values.replicas | default 1)) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "krane.selector" . | nindent 10 }}
  {{- end }}
  containers:
    - name: krane
      image: {{ include "krane.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: [{{ .args }}, --config, /etc/krane/krane.toml]
      {{- if ne .part "server" }}
      env:
        - name: UNKEY_INSTANCE_ID
          valueFrom: { fieldRef: { fieldPath: metadata.name } }
        {{- if eq .part "agent" }}
        # Where the other agents forward calls to while this one leads.
        - name: UNKEY_ADVERTISE_ADDRESS
          valueFrom: { fieldRef: { fieldPath: status.podIP } }
        {{- end }}
      {{- end }}
      ports:
        - { name: rpc, containerPort: {{ include "krane.port" .part }} }
        - { name: metrics, containerPort: 9090 }
      # Longer than all time limits of a start together, also on a slow node: if a start fails, krane exits with a reason,
      # which a failed probe would not give.
      startupProbe:
        httpGet: { path: /health/startup, port: rpc, scheme: {{ $scheme }} }
        periodSeconds: 2
        timeoutSeconds: 5
        failureThreshold: 75
      livenessProbe:
        httpGet: { path: /health/live, port: rpc, scheme: {{ $scheme }} }
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: { path: /health/ready, port: rpc, scheme: {{ $scheme }} }
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: 3
      resources: {{- toYaml $values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      volumeMounts:
        - { name: config, mountPath: /etc/krane, readOnly: true }
        - { name: secrets, mountPath: /run/secrets/krane, readOnly: true }
        {{- if $values.tlsSecret }}
        - { name: tls, mountPath: /run/secrets/tls, readOnly: true }
        {{- end }}
        {{- with .mounts }}{{ . | nindent 8 }}{{ end }}
  volumes:
    - name: config
      configMap: { name: {{ include "krane.name" . }} }
    # Readable only by the group of the pod.
    - name: secrets
      secret: { secretName: {{ $values.secret }}, defaultMode: 0440 }
    {{- with $values.tlsSecret }}
    - name: tls
      secret: { secretName: {{ . }}, defaultMode: 0440 }
    {{- end }}
    {{- with .volumes }}{{ . | nindent 4 }}{{ end }}
{{- end -}}
