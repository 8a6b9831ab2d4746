{{- /* Names, labels and addresses. `part` is agent, server, vault, postgres or monitoring. */ -}}
{{- define "krane.name" -}}
{{- $base := .root.Release.Name | trunc 40 | trimSuffix "-" -}}
{{- if eq .part "agent" }}{{ $base }}{{ else }}{{ $base }}-{{ .part }}{{ end -}}
{{- end -}}

{{- define "krane.selector" -}}
app.kubernetes.io/name: krane
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end -}}

{{- /* managed-by must be Helm: krane and the policies treat objects with managed-by krane as workloads. */ -}}
{{- define "krane.labels" -}}
{{ include "krane.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end -}}

{{- define "krane.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "krane.port" -}}
{{- if eq . "agent" }}8070{{ else if eq . "server" }}7091{{ else if eq . "postgres" }}5432{{ else }}8060{{ end -}}
{{- end -}}

{{- define "krane.scheme" -}}
{{- if (get .root.Values .part).tlsSecret }}https{{ else }}http{{ end -}}
{{- end -}}

{{- /* The URL of a part, for pods of any namespace. */ -}}
{{- define "krane.url" -}}
{{ include "krane.scheme" . }}://{{ include "krane.name" . }}.{{ .root.Release.Namespace }}.svc.cluster.local:{{ include "krane.port" .part }}
{{- end -}}
