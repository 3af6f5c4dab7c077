{{- /*
What the appliers call, and no more. They list and watch objects with our labels, and `get` those that have the names of
ours but not our labels. They write by server-side apply: `patch`, and `create` for what doesn't exist yet.
*/ -}}
{{- define "tagyard.rules" -}}
# RBAC knows no labels: the account may read all Secrets, here and in all namespaces if each client has its own.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create, patch, delete]
# Earlier versions made one for each Secret. ConfigMaps of others keep a client's namespace from being deleted.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [list, watch, delete]
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
# To find the earlier templates of Deployments, and the Secrets that they name.
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list]
# To say why pods don't start.
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
# To find objects of others in a namespace of ours: a namespace that contains one of these kinds isn't deleted.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [list]
- apiGroups: [apps]
  resources: [statefulsets]
  verbs: [list]
- apiGroups: [apps]
  resources: [daemonsets]
  verbs: [list]
- apiGroups: [batch]
  resources: [jobs]
  verbs: [list]
- apiGroups: [batch]
  resources: [cronjobs]
  verbs: [list]
- apiGroups: [networking.k8s.io]
  resources: [ingresses]
  verbs: [list]
{{- end }}
{{- end -}}
