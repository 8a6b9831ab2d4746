{{- /* The settings of each part, as JSON: those of the chart, overridden by `config` in the values. */ -}}
{{- define "krane.agentSettings" -}}
{{- include "krane.checkConfig" (dict "root" . "part" "agent" "own" (list "rpc_port" "listen_host" "advertise_address" "control.token" "agent.token" "scheduler.token" "registry.password" "vault.token" "vault.master_keys" "vault.s3.access_key_secret" "seal.keys")) -}}
{{- $values := .Values.agent -}}
{{- $control := $values.controlPlane -}}
{{- $settings := dict
  "region" .Values.region
  "rpc_port" 8070
  "lease" "required"
  "control" (dict "url" $control.url "token_file" "/run/secrets/krane/control-token")
  "agent" (dict "token_file" "/run/secrets/krane/agent-token")
  "observability" (dict "metrics" (dict "prometheus_port" 9090)) -}}
{{- if not $control.url -}}
{{- if not .Values.server.enabled }}{{ fail "agent.controlPlane.url is required if server.enabled is false" }}{{ end -}}
{{- $_ := set $settings.control "url" (include "krane.url" (dict "root" . "part" "server")) -}}
{{- end -}}
{{- if $control.caSecret }}{{ $_ := set $settings.control "ca_file" "/run/secrets/control-ca/ca.crt" }}{{ end -}}
{{- $vaultUrl := $values.vault.url -}}
{{- if and .Values.vault.enabled (not $vaultUrl) }}{{ $vaultUrl = include "krane.url" (dict "root" . "part" "vault") }}{{ end -}}
{{- if $vaultUrl -}}
{{- $_ := set $settings "vault" (dict "url" $vaultUrl "token_file" "/run/secrets/krane/vault-token") -}}
{{- if $values.vault.caSecret }}{{ $_ := set $settings.vault "ca_file" "/run/secrets/vault-ca/ca.crt" }}{{ end -}}
{{- end -}}
{{- if $values.registry.url -}}
{{- $_ := set $settings "registry" (dict "url" $values.registry.url "username" $values.registry.username "password_file" "/run/secrets/krane/registry-password") -}}
{{- end -}}
{{- if $values.tlsSecret }}{{ $_ := set $settings "tls" (include "krane.tlsSettings" . | fromJson) }}{{ end -}}
{{- $isolation := dict -}}
{{- if not $values.isolation.runtimeClass }}{{ $_ := set $isolation "runtime_class" "" }}{{ end -}}
{{- if ne $values.isolation.networkPolicy "required" }}{{ $_ := set $isolation "network_policy" $values.isolation.networkPolicy }}{{ end -}}
{{- if $isolation }}{{ $_ := set $settings "isolation" $isolation }}{{ end -}}
{{- if $values.logs.enabled }}{{ $_ := set $settings "logs" (dict "enabled" true) }}{{ end -}}
{{- with $values.gateway }}{{- if .name -}}
{{- $gateway := dict "namespace" .namespace "name" .name -}}
{{- if .listener }}{{ $_ := set $gateway "listener" .listener }}{{ end -}}
{{- if ne .proxies "pods" }}{{ $_ := set $gateway "proxies" .proxies }}{{ end -}}
{{- if .proxyNamespace }}{{ $_ := set $gateway "proxy_namespace" .proxyNamespace }}{{ end -}}
{{- $_ := set $settings "gateway" $gateway -}}
{{- end }}{{ end -}}
{{- $settings = mergeOverwrite $settings (deepCopy $values.config) -}}
{{- if $settings.vault -}}
{{- $endpoint := dict "endpoint" (include "krane.url" (dict "root" . "part" "agent")) -}}
{{- $_ := set $settings "secrets" (mergeOverwrite $endpoint ($settings.secrets | default dict)) -}}
{{- end -}}
{{- if and (gt (int $values.replicas) 1) (ne $settings.lease "required") -}}
{{- fail "agent.replicas: more than one needs lease = \"required\", because otherwise all of them could write" -}}
{{- end -}}
{{- toRawJson $settings -}}
{{- end -}}

{{- define "krane.lease" -}}
{{- get (include "krane.agentSettings" . | fromJson) "lease" -}}
{{- end -}}

{{- /* Not empty if the agent can be replaced pod by pod: the running one, if there is one, heeds the lease. Without access to the
cluster (helm template) nothing is known of it: agent.strategy says it. */ -}}
{{- define "krane.isAgentRolling" -}}
{{- $running := lookup "apps/v1" "Deployment" .Release.Namespace (include "krane.name" (dict "root" . "part" "agent")) -}}
{{- $before := dig "metadata" "annotations" "krane.unkey.com/lease" "" ($running | default dict) -}}
{{- $isSafe := and (eq "required" (include "krane.lease" .)) (or (not $running) (eq "required" $before)) -}}
{{- if and $isSafe (ne .Values.agent.strategy "Recreate") }}true{{ end -}}
{{- end -}}

{{- /* Not empty if pods of deployments must run in the sandbox. */ -}}
{{- define "krane.isSandboxed" -}}
{{- if ne "" (dig "isolation" "runtime_class" "gvisor" (include "krane.agentSettings" . | fromJson)) }}true{{ end -}}
{{- end -}}

{{- /* Not empty if the policies of this chart are installed: always, unless the settings allow a cluster without them. `kind`:
the kind of policy. */ -}}
{{- define "krane.hasPolicies" -}}
{{- $isOptional := false -}}
{{- if .root.Values.agent.enabled -}}
{{- $isOptional = eq "best-effort" (dig "isolation" "network_policy" "required" (include "krane.agentSettings" .root | fromJson)) -}}
{{- end -}}
{{- if or (not $isOptional) (.root.Capabilities.APIVersions.Has (printf "cilium.io/v2/%s" .kind)) }}true{{ end -}}
{{- end -}}

{{- /* Where the agent keeps its own objects. */ -}}
{{- define "krane.stateNamespace" -}}
{{- dig "kubernetes" "namespace" .Release.Namespace (include "krane.agentSettings" . | fromJson) -}}
{{- end -}}

{{- define "krane.serverSettings" -}}
{{- include "krane.checkConfig" (dict "root" . "part" "server" "own" (list "server.listen" "server.database_url" "server.agent_tokens" "server.admin_tokens" "server.oidc.client_secret")) -}}
{{- include "krane.checkServerExposure" . -}}
{{- $values := .Values.server -}}
{{- $server := dict
  "listen" "0.0.0.0:7091"
  "database_url_file" (ternary "/run/secrets/postgres/database-url" "/run/secrets/krane/database-url" .Values.trialPostgres.enabled)
  "agent_tokens_file" "/run/secrets/krane/agent-tokens"
  "admin_tokens_file" "/run/secrets/krane/admin-tokens" -}}
{{- $settings := dict "server" $server "observability" (dict "metrics" (dict "prometheus_port" 9090)) -}}
{{- if $values.tlsSecret }}{{ $_ := set $settings "tls" (include "krane.tlsSettings" . | fromJson) }}
{{- else }}{{ $_ := set $server "allow_insecure" true }}{{ end -}}
{{- mergeOverwrite $settings (deepCopy $values.config) | toRawJson -}}
{{- end -}}

{{- define "krane.vaultSettings" -}}
{{- include "krane.checkConfig" (dict "root" . "part" "vault" "own" (list "rpc_port" "listen_host" "vault.token" "vault.master_keys" "vault.s3.access_key_secret")) -}}
{{- $values := .Values.vault -}}
{{- $vault := dict "token_file" "/run/secrets/krane/token" "master_keys_file" "/run/secrets/krane/master-keys" -}}
{{- if $values.s3.bucket -}}
{{- $_ := set $vault "s3" (dict "url" $values.s3.url "bucket" $values.s3.bucket "access_key_id" $values.s3.accessKeyId "access_key_secret_file" "/run/secrets/krane/s3-secret") -}}
{{- if $values.s3.region }}{{ $_ := set $vault.s3 "region" $values.s3.region }}{{ end -}}
{{- else -}}
{{- if gt (int $values.replicas) 1 }}{{ fail "vault.replicas: more than one needs vault.s3, because a volume is mounted on one node" }}{{ end -}}
{{- $_ := set $vault "file" (dict "path" "/var/lib/krane-vault/keys") -}}
{{- end -}}
{{- $settings := dict "rpc_port" 8060 "vault" $vault "observability" (dict "metrics" (dict "prometheus_port" 9090)) -}}
{{- if $values.tlsSecret }}{{ $_ := set $settings "tls" (include "krane.tlsSettings" . | fromJson) }}
{{- else }}{{ $_ := set $vault "allow_insecure" true }}{{ end -}}
{{- mergeOverwrite $settings (deepCopy $values.config) | toRawJson -}}
{{- end -}}

{{- /* Rejects user settings that contradict the rest of the chart, and secrets, which would be readable in a ConfigMap.
`own`: the paths of this part. */ -}}
{{- define "krane.checkConfig" -}}
{{- $config := (get .root.Values .part).config -}}
{{- range $path := concat .own (list "tls" "observability.metrics.prometheus_port") -}}
{{- $steps := splitList "." $path -}}
{{- $table := $config -}}
{{- range initial $steps }}{{ $table = get (kindIs "map" $table | ternary $table dict) . }}{{ end -}}
{{- if and (kindIs "map" $table) (hasKey (kindIs "map" $table | ternary $table dict) (last $steps)) -}}
{{- fail (printf "%s.config: %s cannot be set here: the chart sets addresses and ports, %s.tlsSecret enables TLS, and secrets belong in the Secret that %s.secret names" $.part $path $.part $.part) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Cleartext tokens are allowed only if the server is reachable only from this cluster, or the user says that TLS is terminated before it. */ -}}
{{- define "krane.checkServerExposure" -}}
{{- $components := .Values.cilium.components -}}
{{- $open := or (ne .Values.server.service.type "ClusterIP") (has "world" $components.serverFromEntities) (has "all" $components.serverFromEntities) -}}
{{- $meant := dig "server" "allow_insecure" false .Values.server.config -}}
{{- if and $open (not .Values.server.tlsSecret) (not $meant) -}}
{{- fail "server.tlsSecret is required if server.service.type or cilium.components.serverFromEntities exposes the server outside this cluster: the admin API is on the same port, and tokens would be sent in cleartext. If TLS is terminated before the server, set server.config.server.allow_insecure=true" -}}
{{- end -}}
{{- end -}}

{{- define "krane.tlsSettings" -}}
{{- dict "cert_file" "/run/secrets/tls/tls.crt" "key_file" "/run/secrets/tls/tls.key" | toRawJson -}}
{{- end -}}

{{- /* The configuration file of a part. */ -}}
{{- define "krane.configFile" -}}
{{- $settings := include (printf "krane.%sSettings" .part) .root | fromJson -}}
{{- include "krane.toml" (dict "path" "" "table" $settings) | trim -}}
{{- end -}}
