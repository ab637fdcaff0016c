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
{{- printf "prometheus.retentionSize %s is more than 80 %% of prometheus.size %s (%dMB): its volume would fill, and regions would have no signals. Leave it empty for so much, or give it more room." .retentionSize .size $room | fail }}
{{- end }}
{{- .retentionSize | default (printf "%dMB" $room) -}}
{{- end -}}
