{{- define "streamgraft.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}

{{- define "streamgraft.labels" -}}
app.kubernetes.io/name: streamgraft
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Labels or annotations: `--set` makes numbers and booleans of what looks like them. */}}
{{- define "streamgraft.strings" -}}
{{- range $name, $value := . }}
{{ $name | quote }}: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end -}}

{{/* What `restricted` of the pod security standards asks of a container, and a root that nobody writes to. */}}
{{- define "streamgraft.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{/* Volumes are the group's of whoever runs: our image's user, or that of an image of others. */}}
{{- define "streamgraft.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user | default 10001 }}
  fsGroup: {{ .user | default 10001 }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{/* Annotations of a pod that has a volume `scratch` of its node, which the cluster autoscaler need not keep the node for. */}}
{{- define "streamgraft.podAnnotations" -}}
{{- include "streamgraft.strings" (merge (deepCopy .) (dict "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes" "scratch")) | trim -}}
{{- end -}}

{{/* Where the pods of a Deployment go: one replica per node if there are as many. They leave a node that is lost as soon as
     PEs do, which an operator has to start elsewhere; whoever sets a toleration of one of the taints decides himself. */}}
{{- define "streamgraft.placement" -}}
{{- with .settings.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $tolerated := .settings.tolerations }}
{{- $keys := list }}
{{- range $tolerated }}
{{- $keys = append $keys (.key | default "all") }}
{{- end }}
{{- range $key := list "node.kubernetes.io/unreachable" "node.kubernetes.io/not-ready" }}
{{- if not (or (has $key $keys) (has "all" $keys)) }}
{{- $tolerated = append $tolerated (dict "key" $key "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" 30) }}
{{- end }}
{{- end }}
tolerations: {{- toYaml $tolerated | nindent 2 }}
{{- with .settings.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        app: {{ .app }}
    # Else pods of the version before count, too, and both of the new one may come to one node.
    matchLabelKeys: [pod-template-hash]
{{- end -}}

{{- define "streamgraft.bootstrapServers" -}}
{{- if .Values.kafka.create -}}
streamgraft-kafka.{{ .Release.Namespace }}.svc:9092
{{- else -}}
{{ .Values.kafka.bootstrapServers }}
{{- end -}}
{{- end -}}

{{- define "streamgraft.prometheusUrl" -}}
{{- if .Values.prometheus.create -}}
http://streamgraft-prometheus.{{ .Release.Namespace }}.svc:9090
{{- else -}}
{{ .Values.adapter.prometheusUrl }}
{{- end -}}
{{- end -}}

{{/* A file of alerts, with the addresses of the runbook as they are where it is read. */}}
{{- define "streamgraft.alerts" -}}
{{ toString .text | replace "runbook_url: docs/operate/runbook.md" (print "runbook_url: " .root.Values.alerts.runbookUrl) }}
{{- end -}}

{{- define "streamgraft.rules" -}}
{{- toYaml (index (.root.Files.Get "files/rules.yaml" | fromYaml) .of) -}}
{{- end -}}

{{/* MiB of a quantity of Kubernetes (10Gi) or a size of Prometheus, whose GB are GiB. */}}
{{- define "streamgraft.mebibytes" -}}
{{- $kib := 1024.0 }}
{{- $mega := divf 1e6 (mulf $kib $kib) }}
{{- $factors := dict "Mi" 1.0 "MB" 1.0 "Gi" $kib "GB" $kib "Ti" (mulf $kib $kib) "TB" (mulf $kib $kib) }}
{{- $factors = merge $factors (dict "M" $mega "G" (mulf $mega 1e3) "T" (mulf $mega 1e6)) }}
{{- mulf (regexFind "^[0-9.]+" .) (get $factors (regexFind "[A-Za-z]+$" .)) | floor | int64 -}}
{{- end -}}

{{/* What the chart's Prometheus keeps at most: the rest of its volume is for what it writes beside its blocks. */}}
{{- define "streamgraft.retentionSize" -}}
{{- $room := mulf 0.8 (include "streamgraft.mebibytes" .size) | floor | int64 }}
{{- if and .retentionSize (gt (include "streamgraft.mebibytes" .retentionSize | int64) $room) }}
{{- printf "prometheus.retentionSize %s is more than 80 %% of prometheus.size %s (%dMB): its volume would fill, and regions would have no signals. Leave it empty for so much, or give it more room by prometheus.size; helm says how, where the volume exists." .retentionSize .size $room | fail }}
{{- end }}
{{- .retentionSize | default (printf "%dMB" $room) -}}
{{- end -}}

{{/* MiB of a quantity; nothing of one that is written in another way. */}}
{{- define "streamgraft.knownMebibytes" -}}
{{- if regexMatch "^[0-9]+([.][0-9]+)?[MGT]i?$" (toString .) }}{{ include "streamgraft.mebibytes" . }}{{ end -}}
{{- end -}}

{{/* Says what to do where values change what Kubernetes does not: of a claim all but a larger size. Those who only render
     see no claims, and nothing is said. */}}
{{- define "streamgraft.claimStays" -}}
{{- with lookup "v1" "PersistentVolumeClaim" .namespace .name }}
{{- $settings := $.settings }}
{{- $size := .spec.resources.requests.storage }}
{{- $class := .spec.storageClassName | default "" }}
{{- $wanted := include "streamgraft.knownMebibytes" $settings.size }}
{{- $held := include "streamgraft.knownMebibytes" $size }}
{{- $smaller := and $wanted $held (lt (int64 $wanted) (int64 $held)) }}
{{- $otherClass := and $settings.storageClassName (ne $settings.storageClassName $class) }}
{{- if or $smaller $otherClass (ne (sortAlpha $settings.accessModes | join ",") (sortAlpha .spec.accessModes | join ",")) }}
{{- printf "the claim %s in namespace %s exists, with accessModes {%s}, storageClassName %q and size %s, and can't get others, but a larger size where its class lets volumes grow. Set checkpoints.accessModes, .storageClassName and .size to these; or, if nothing in it is needed: kubectl delete pvc %s -n %s" $.name $.namespace (join "," .spec.accessModes) $class $size $.name $.namespace | fail }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Likewise for the volume of a StatefulSet, whose size it does not change either. */}}
{{- define "streamgraft.volumeStays" -}}
{{- with lookup "apps/v1" "StatefulSet" .namespace .name }}
{{- $settings := $.settings }}
{{- $spec := (index .spec.volumeClaimTemplates 0).spec }}
{{- $size := $spec.resources.requests.storage }}
{{- $class := $spec.storageClassName | default "" }}
{{- $wanted := include "streamgraft.knownMebibytes" $settings.size }}
{{- $held := include "streamgraft.knownMebibytes" $size }}
{{- if or (and $wanted $held (ne $wanted $held)) (ne $settings.storageClassName $class) }}
{{- $way := printf "kubectl delete statefulset %s -n %s --cascade=orphan" $.name $.namespace }}
{{- if and (eq $settings.storageClassName $class) (gt (int64 $wanted) (int64 $held)) }}
{{- $request := dict "spec" (dict "resources" (dict "requests" (dict "storage" $settings.size))) | toJson }}
{{- $way = printf "if its class lets volumes grow: kubectl patch pvc data-%s-0 -n %s -p '%s', %s" $.name $.namespace $request $way }}
{{- else }}
{{- $way = printf "if nothing in it is needed: %s, kubectl delete pvc/data-%s-0 pod/%s-0 -n %s" $way $.name $.name $.namespace }}
{{- end }}
{{- printf "the StatefulSet %s in namespace %s exists, with a volume of size %s and storageClassName %q, and can't get another. Set %s.size and .storageClassName to these; or, %s, and upgrade again." $.name $.namespace $size $class $.values $way | fail }}
{{- end }}
{{- end }}
{{- end -}}
