{{- /*
What the appliers call in the sites' namespaces, and no more. They read by lists and watches with our labels, and write by
server-side apply, which needs `create` beside `patch` for what doesn't exist yet.
*/ -}}
{{- define "tagyard.rules" -}}
# RBAC knows no right to metadata alone: whoever may list Secrets may read them. The provisioner asks for metadata only.
- apiGroups: [""]
  resources: [secrets]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [autoscaling]
  resources: [horizontalpodautoscalers]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [apps]
  resources: [replicasets]
  verbs: [list, watch]
- apiGroups: [""]
  resources: [pods]
  verbs: [list]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [list]
{{- end -}}

{{- /* Where each client has a namespace of its own. */ -}}
{{- define "tagyard.clusterRules" -}}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [resourcequotas]
  verbs: [list, watch, create, patch, delete]
{{- end -}}
