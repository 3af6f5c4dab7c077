{{- /*
What the appliers call, and no more. They follow objects with our labels by list and watch, read by `get` what has their
names but not our labels, and write by server-side apply: `patch`, and `create` for what doesn't exist yet.
*/ -}}
{{- define "tagyard.rules" -}}
# RBAC knows no right to metadata alone: whoever may list Secrets may read them. The provisioner asks for metadata only.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list, watch]
# Why pods don't start.
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list]
{{- if .Values.namespace }}
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch]
{{- else }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [get, list, watch, create, patch]
# With these of others in it, a namespace of ours isn't deleted.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list]
{{- end }}
{{- end -}}
