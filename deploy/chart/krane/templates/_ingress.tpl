{{- /* The policy of one part of the release. `callers`: selectors of pods that may call its RPC port. */ -}}
{{- define "krane.componentPolicy" -}}
{{- $port := include "krane.port" .part | quote -}}
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: {{ include "krane.name" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "krane.labels" . | nindent 4 }}
spec:
  endpointSelector:
    matchLabels: {{- include "krane.selector" . | nindent 6 }}
  ingress:
    - fromEndpoints:
        {{- .callers | nindent 8 }}
        {{- range .namespaces }}
        - matchLabels:
            k8s:io.kubernetes.pod.namespace: {{ . }}
        {{- end }}
      toPorts:
        - ports:
            - { port: {{ $port }}, protocol: TCP }
    # Kubelet probes.
    - fromEntities: {{- prepend (.entities | default list) "host" | toYaml | nindent 8 }}
      toPorts:
        - ports:
            - { port: {{ $port }}, protocol: TCP }
    {{- with .root.Values.cilium.components.metricsFromNamespaces }}
    - fromEndpoints:
        {{- range . }}
        - matchLabels:
            k8s:io.kubernetes.pod.namespace: {{ . }}
        {{- end }}
      toPorts:
        - ports:
            - { port: "9090", protocol: TCP }
    {{- end }}
{{- end -}}

{{- define "krane.fromAgent" -}}
- matchLabels: {{- include "krane.selector" (dict "root" . "part" "agent") | nindent 4 }}
{{- end -}}
