{{- /* Renders a map as TOML, for settings that the chart does not know. Null values are omitted. */ -}}
{{- define "krane.toml" -}}
{{- $lines := list -}}
{{- range $key, $value := .table -}}
{{- if not (or (kindIs "map" $value) (kindIs "invalid" $value)) -}}
{{- $lines = append $lines (printf "%s = %s" $key (include "krane.tomlValue" $value)) -}}
{{- end -}}
{{- end -}}
{{- if and $lines .path }}{{ $lines = prepend $lines (printf "[%s]" .path) }}{{ end -}}
{{- range $key, $value := .table -}}
{{- if kindIs "map" $value -}}
{{- $path := ternary $key (printf "%s.%s" $.path $key) (eq $.path "") -}}
{{- $lines = append $lines (include "krane.toml" (dict "path" $path "table" $value)) -}}
{{- end -}}
{{- end -}}
{{- without $lines "" | join "\n" -}}
{{- end -}}

{{- /* Numbers in values are floating-point, and TOML distinguishes 1.0 from 1. JSON strings and lists are valid TOML. */ -}}
{{- define "krane.tomlValue" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ toRawJson . }}{{ end -}}
{{- end -}}
