{{- /* A ClusterRole of the agent and its binding. `suffix` distinguishes the roles; `rules` come from the list of calls. */ -}}
{{- define "krane.clusterRole" -}}
{{- $part := dict "root" .root "part" "agent" -}}
{{- $name := printf "%s%s" (include "krane.name" $part) .suffix -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels: {{- include "krane.labels" $part | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "krane.labels" $part | nindent 4 }}
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $name }} }
subjects:
  - { kind: ServiceAccount, name: {{ include "krane.name" $part }}, namespace: {{ .root.Release.Namespace }} }
{{- end -}}
