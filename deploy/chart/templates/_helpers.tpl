{{- define "tagyard.name" -}}
{{- if eq .Release.Name "tagyard" }}tagyard{{ else }}{{ printf "tagyard-%s" .Release.Name | trunc 53 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- /* Names outside of namespaces: two releases of one name in two namespaces must not clash. */ -}}
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

{{- /* A value of `settings` as text. Numbers are floats here, which `toString` writes as 1.2345678e+07. */ -}}
{{- define "tagyard.setting" -}}
{{ if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end }}
{{- end -}}

{{- define "tagyard.claim" -}}
{{ default (printf "%s-state" (include "tagyard.name" .)) .Values.state.existingClaim }}
{{- end -}}

{{- define "tagyard.gateway.name" -}}
{{- /* Services have names of up to 63 characters, and some of them a suffix. */ -}}
{{ printf "%s-gateway" (include "tagyard.name" . | trunc 45 | trimSuffix "-") }}
{{- end -}}

{{- /* Of the objects of one custom domain: a label, different for each. Takes the context and the domain. */ -}}
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

{{- /* KUBERNETES_GATEWAY_SERVICE: of this chart's gateway, else as the settings say. */ -}}
{{- define "tagyard.gateway.service" -}}
{{- if .Values.gateway.enabled -}}
{{ .Values.gateway.namespace }}/{{ include "tagyard.gateway.name" . }}
{{- else -}}
{{ .Values.settings.KUBERNETES_GATEWAY_SERVICE | default "" }}
{{- end -}}
{{- end -}}
