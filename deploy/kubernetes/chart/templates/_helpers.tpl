{{- define "perftracker.name" -}}
{{- if contains "perftracker" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-perftracker" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "perftracker.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* labels of a part: (list $ "hub") */ -}}
{{- define "perftracker.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: perftracker
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "perftracker.labels" -}}
{{- $top := index . 0 -}}
{{ include "perftracker.selector" . }}
app.kubernetes.io/version: {{ $top.Chart.AppVersion | quote }}
{{- end }}

{{- /* the keys of the site's file that the chart sets count more than those of the values */ -}}
{{- define "perftracker.site" -}}
{{- $bus := dict "ca" "/etc/perftracker/bus/ca.crt" "nkey_file" "/etc/perftracker/bus/bus.pub" "nkey_seed_file" "/etc/perftracker/bus/bus.seed" -}}
{{- $hostd := dict "socket" "/run/perftracker/hostd.sock" "folder" (printf "%s/hostd" .Values.hostd.folder) -}}
{{- $hub := dict "folder" "/var/lib/perftracker/jobs" "run" "/run/perftracker-hub/leaders" -}}
{{- if .Values.secrets.tokens -}}
{{- $_ := set $hub "ui" (printf "0.0.0.0:%d" (int .Values.hub.port)) -}}
{{- $_ := set $hub "ui_token_file" "/etc/perftracker/page/tokens" -}}
{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy .Values.site) (dict "bus" $bus "hostd" $hostd "hub" $hub)) -}}
{{- end }}

{{- define "perftracker.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
