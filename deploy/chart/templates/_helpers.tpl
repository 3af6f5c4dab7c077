{{- define "tagyard.name" -}}
{{- if eq .Release.Name "tagyard" }}tagyard{{ else }}{{ printf "tagyard-%s" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- /* For objects outside of namespaces: releases of the same name in two namespaces must not clash. */ -}}
{{- define "tagyard.clusterName" -}}
{{ printf "%s-%s" .Release.Namespace (include "tagyard.name" .) | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "tagyard.selector" -}}
app.kubernetes.io/name: tagyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: provisioner
{{- end -}}

{{- define "tagyard.labels" -}}
{{ include "tagyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* A value of `settings` as text. Helm has numbers as floats, which `toString` writes as 1.2345678e+07. */ -}}
{{- define "tagyard.setting" -}}
{{ if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end -}}

{{- define "tagyard.claim" -}}
{{ default (printf "%s-state" (include "tagyard.name" .)) .Values.state.existingClaim }}
{{- end -}}

{{- define "tagyard.freeze" -}}
{{ printf "%s-freeze" (include "tagyard.name" .) }}
{{- end -}}

{{- define "tagyard.gateway.name" -}}
{{- /* The name of a Service has up to 63 characters, and some Services add a suffix to this one. */ -}}
{{ printf "%s-gateway" (include "tagyard.name" . | trunc 45 | trimSuffix "-") }}
{{- end -}}

{{- /* The name of all objects of one custom domain: a DNS label that differs for each domain. Takes the context and the domain. */ -}}
{{- define "tagyard.gateway.domainName" -}}
{{- $host := index . 1 -}}
{{ printf "%s-%s" (include "tagyard.gateway.name" (index . 0) | trunc 40 | trimSuffix "-") (sha256sum $host | trunc 16) }}
{{- end -}}

{{- define "tagyard.gateway.clusterName" -}}
{{ printf "%s-gateway" (include "tagyard.clusterName" . | trunc 55 | trimSuffix "-") }}
{{- end -}}

{{- define "tagyard.gateway.selector" -}}
app.kubernetes.io/name: tagyard
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end -}}

{{- define "tagyard.gateway.labels" -}}
{{ include "tagyard.gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- /* KUBERNETES_GATEWAY_SERVICE: the Service of this chart's gateways, or else the one in `settings`. */ -}}
{{- define "tagyard.gateway.service" -}}
{{- if .Values.gateway.enabled -}}
{{ .Values.gateway.namespace }}/{{ include "tagyard.gateway.name" . }}
{{- else -}}
{{ .Values.settings.KUBERNETES_GATEWAY_SERVICE | default "" }}
{{- end -}}
{{- end -}}
