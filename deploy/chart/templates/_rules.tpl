{{- /*
What the appliers call, and no more. They follow objects with our labels by list and watch, read by `get` what has their
names but not our labels, and write by server-side apply: `patch`, and `create` for what doesn't exist yet.
*/ -}}
{{- define "tagyard.rules" -}}
# No right on Secrets by which one could be read: the answer to a patch has the content, and so may that to a deletion.
- apiGroups: [""]
  resources: [secrets]
  verbs: [create]
# Each owns one Secret. In a client's namespace, those of others keep it from being deleted.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch, create, delete]
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
  resources: [persistentvolumeclaims]
  verbs: [list]
{{- end }}
{{- end -}}
