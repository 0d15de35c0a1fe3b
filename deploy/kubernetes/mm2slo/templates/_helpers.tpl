{{/* Names and labels. */}}
{{- define "mm2slo.fullname" -}}
{{- range list "image" "config" "mirrorMaker2" "tls" "store" "exporter" "report" "service" "ingress" "route" "audit" "digest" "slack" "podMonitor" "serviceMonitor" "prometheusRule" "alertmanagerConfig" "grafanaDashboards" "networkPolicy" "podDisruptionBudget" "serviceAccount" "store/postgresql" "store/persistence" "report/tokens" "report/metricsToken" "audit/image" "audit/spark" -}}
{{- if not (hasKey (eq (dir .) "." | ternary $.Values (get $.Values (dir .))) (base .)) -}}
{{- fail (printf "%s is null; expected a mapping: remove the line, or set a value below it" (replace "/" "." .)) -}}
{{- end -}}
{{- end -}}
{{- $name := .Values.nameOverride | default .Chart.Name -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "mm2slo.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "mm2slo.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{ include "mm2slo.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* `metadata` of a resource: root, and optionally suffix, labels, annotations. */}}
{{- define "mm2slo.metadata" -}}
metadata:
  name: {{ include "mm2slo.fullname" .root }}{{ with .suffix }}-{{ . }}{{ end }}
  namespace: {{ .root.Release.Namespace | quote }}
  labels:
    {{- include "mm2slo.labels" .root | nindent 4 }}
    {{- with .labels }}{{ toYaml . | nindent 4 }}{{ end }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "mm2slo.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (.Values.serviceAccount.create | ternary (include "mm2slo.fullname" .) "default") -}}
{{- end }}

{{- define "mm2slo.image" -}}
{{- $tag := printf ":%s" (.image.tag | default .root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- .image.repository | default (printf "%s-audit" .root.Values.image.repository) }}{{ empty .image.digest | ternary $tag (printf "@%s" .image.digest) -}}
{{- end }}

{{/*
The specs in mirrorMaker2.resource as JSON {specs: [{clusters: [...], rest: ...}]}: the clusters, and what
does not belong to one. Fails for a document that mm2slo does not read.
*/}}
{{- define "mm2slo.mirrors" -}}
{{- $specs := list -}}
{{- range splitList "\n---" (.Values.mirrorMaker2.resource | default "") -}}
{{- $document := fromYaml . -}}
{{- with $document.Error -}}
{{- $line := regexFind "line [0-9]+: .*" . | printf " (%s)" | replace " ()" "" -}}
{{- fail (printf "mirrorMaker2.resource is no KafkaMirrorMaker2 in YAML%s; expected --set-file mirrorMaker2.resource=FILE" $line) -}}
{{- end -}}
{{- if and $document (not (has $document.kind (list "KafkaMirrorMaker2" "KafkaMirrorMaker2List" "List"))) -}}
{{- fail (printf "mirrorMaker2.resource has the kind %v; expected a KafkaMirrorMaker2" $document.kind) -}}
{{- end -}}
{{- include "mm2slo.refuseSecrets" (dict "path" "mirrorMaker2.resource" "value" $document) -}}
{{- range $document.items | default (list $document) -}}
{{- $spec := .spec | default dict -}}
{{- $clusters := concat (list $spec.target) ($spec.clusters | default list) -}}
{{- $rest := list (omit $spec "target" "clusters" "mirrors") -}}
{{- range $spec.mirrors -}}
{{- $clusters = append $clusters .source -}}
{{- $rest = append $rest (omit . "source") -}}
{{- end -}}
{{- $specs = append $specs (dict "clusters" (compact $clusters) "rest" $rest) -}}
{{- end -}}
{{- end -}}
{{- dict "specs" $specs | toJson -}}
{{- end }}

{{/* "true" for Spark on Kubernetes. */}}
{{- define "mm2slo.sparkOnKubernetes" -}}
{{- if and .Values.audit.enabled (hasPrefix "k8s://" .Values.audit.spark.master) }}true{{ end -}}
{{- end }}

{{/* Names of the Secrets that a component mounts, as JSON {names: [...]}: root, component. */}}
{{- define "mm2slo.secretNames" -}}
{{- $v := .root.Values -}}
{{- $own := dict "report" $v.report.tokens.secretName "digest" $v.slack.secretName -}}
{{- $names := concat ($v.secrets | default list) (list $v.tls.secretName (get $own .component)) -}}
{{- $needed := list -}}
{{- range (include "mm2slo.mirrors" .root | fromJson).specs -}}
{{- $needed = append $needed .rest -}}
{{- range .clusters -}}
{{- if not (hasKey (get ($v.config.clusters | default dict) .alias | default dict) "security") -}}{{/* which replaces this one */}}
{{- $needed = append $needed . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range regexFindAll "\"secretName\":\"[^\"]+" (toJson $needed) -1 -}}
{{- $names = append $names (trimPrefix "\"secretName\":\"" .) -}}
{{- end -}}
{{- range regexFindAll "\\$\\{secrets:[^/:}]+/[^:}]+" (toJson $needed) -1 -}}{{/* of Strimzi's config provider */}}
{{- $names = append $names (base .) -}}
{{- end -}}
{{- range regexFindAll "/run/secrets/mm2slo/[a-z0-9][a-z0-9.-]*" (toJson $v.config) -1 -}}
{{- $names = append $names (base .) -}}
{{- end -}}
{{- dict "names" ($names | compact | uniq) | toJson -}}
{{- end }}

{{/*
Fails if a part of `value` at `path` contains a secret instead of a reference to one: path, value, and
optionally expected (what to write instead).
*/}}
{{- define "mm2slo.refuseSecrets" -}}
{{- $path := .path -}}
{{- $isReference := and (kindIs "map" .value) (or (hasKey .value "secretName") (eq (keys .value | sortAlpha | join " ") "key name")) -}}
{{- if and (kindIs "map" .value) (not $isReference) -}}
{{- $variable := kindIs "string" .value.name | ternary (dict (toString .value.name) .value.value) dict -}}
{{- $isResource := hasPrefix "mirrorMaker2" $path -}}{{/* where `key` is a key of a Secret or ConfigMap */}}
{{- range $key, $each := $isResource | ternary (omit .value "key" "metadata" "status") .value | merge $variable -}}
{{- $text := kindIs "string" $each | ternary $each "" -}}
{{- $isSecret := regexMatch "(?i)(password|secret|credentials|token|_key|^key|(api|webhook)_url|keystore\\.key|key\\.pem)$" $key -}}
{{- $isEmbedded := regexMatch "(?i)(password|secret|token)\\s*=\\s*[\"']?[^$\"'\\s]|://[^/@:\\s]*:([^$/@\\s]|\\$[^{])[^/@\\s]*@" $text -}}
{{- if or $isEmbedded (and $text $isSecret (not (hasPrefix "${" $text))) -}}
{{- fail (printf "%s.%s contains a secret, which would be readable in a ConfigMap; %s" $path $key ($.expected | default "expected a reference such as ${file:/run/secrets/mm2slo/SECRET/KEY}")) -}}
{{- end -}}
{{- include "mm2slo.refuseSecrets" (dict "path" (printf "%s.%s" $path $key) "value" $each) -}}
{{- end -}}
{{- else if kindIs "slice" .value -}}
{{- range $index, $each := .value -}}
{{- include "mm2slo.refuseSecrets" (dict "path" (printf "%s[%d]" $path $index) "value" $each) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/*
Fails if a cluster trusts the `ca.crt` of a KafkaUser's Secret: path, trusted (names of Secrets), user
(the Secret with user.crt, or "").
*/}}
{{- define "mm2slo.refuseClientsCa" -}}
{{- if and .user (has .user .trusted) -}}
{{- fail (printf "%s trusts ca.crt of %s, the Secret of a KafkaUser, which is the CA of the clients; expected ca.crt of the Secret CLUSTER-cluster-ca-cert" .path .user) -}}
{{- end -}}
{{- end }}

{{/* The same for each cluster of `config` and of the documents in mirrorMaker2.resource. */}}
{{- define "mm2slo.refuseClientsCas" -}}
{{- range $alias, $cluster := .Values.config.clusters -}}
{{- $tls := (($cluster | default dict).security | default dict).tls | default dict -}}
{{- $ca := $tls.ca_file | default "" -}}
{{- $certificate := $tls.certificate_file | default "" -}}
{{- $user := eq (base $certificate) "user.crt" | ternary (base (dir $certificate)) "" -}}
{{- $trusted := list (eq (base $ca) "ca.crt" | ternary (base (dir $ca)) "-") -}}
{{- include "mm2slo.refuseClientsCa" (dict "path" (printf "config.clusters.%s.security.tls" $alias) "trusted" $trusted "user" $user) -}}
{{- end -}}
{{- range (include "mm2slo.mirrors" . | fromJson).specs -}}
{{- range .clusters -}}
{{- $key := (.authentication | default dict).certificateAndKey | default dict -}}
{{- $trusted := list -}}
{{- range (.tls | default dict).trustedCertificates -}}
{{- $trusted = append $trusted .secretName -}}
{{- end -}}
{{- $user := eq ($key.certificate | default "") "user.crt" | ternary $key.secretName "" -}}
{{- include "mm2slo.refuseClientsCa" (dict "path" (printf "mirrorMaker2.resource: the cluster %v" .alias) "trusted" $trusted "user" $user) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* mm2slo.yaml: `config` over what the chart knows. */}}
{{- define "mm2slo.config" -}}
{{- $v := .Values -}}
{{- $name := include "mm2slo.fullname" . -}}
{{- $secrets := "/run/secrets/mm2slo" -}}
{{- $scheme := empty $v.tls.secretName | ternary "http" "https" -}}
{{- $exporters := list -}}
{{- range until (int $v.exporter.replicas) -}}
{{- $exporters = append $exporters (printf "%s://%s-exporter-%d.%s-exporter.%s.svc:9469" $scheme $name . $name $.Release.Namespace) -}}
{{- end -}}
{{- $host := printf "%s-report" $name -}}
{{- $hosts := list $host (printf "%s.%s" $host .Release.Namespace) (printf "%s.%s.svc" $host .Release.Namespace) -}}
{{- $hosts = concat $hosts (list (ternary $v.ingress.host "" $v.ingress.enabled) (ternary $v.route.host "" $v.route.enabled)) (dig "report" "hosts" "" $v.config | default list) | compact | uniq -}}
{{- $report := dict "recorder" (dict "exporters" $exporters) -}}
{{- $exporter := dict -}}
{{- if $v.report.enabled -}}
{{- $_ := set $report "tokens_file" (printf "%s/%s/%s" $secrets $v.report.tokens.secretName $v.report.tokens.key) -}}
{{- end -}}
{{- with $v.tls.secretName -}}
{{- $_ := set $exporter "web_config_file" "/etc/mm2slo/web-config.yaml" -}}
{{- $_ := set $report "tls" (dict "cert_file" (printf "%s/%s/%s" $secrets . $v.tls.certFile) "key_file" (printf "%s/%s/%s" $secrets . $v.tls.keyFile)) -}}
{{- $_ := set $report.recorder "ca_file" (printf "%s/%s/%s" $secrets . $v.tls.caFile) -}}
{{- end -}}
{{- $audit := dict "store" ($v.store.postgresql.url | default "sqlite:////var/lib/mm2slo/mm2slo.db") "directory" "/var/lib/mm2slo/audit" -}}
{{- $alerting := dict "namespace" .Release.Namespace -}}
{{- $given := $v.config.alerting | default dict -}}
{{- if not (or $given.slack $given.webhooks $given.receivers) -}}
{{- $webhook := printf "%s/%s/%s" $secrets $v.slack.secretName $v.slack.key -}}
{{- $key := dict "name" $v.slack.secretName "key" $v.slack.key -}}
{{- $_ := set $alerting "slack" (list (dict "name" $v.digest.channel "webhook_url_file" $webhook "webhook_secret" $key)) -}}
{{- end -}}
{{- $own := dict "exporter" $exporter "report" $report "audit" $audit "alerting" $alerting -}}
{{- if or $v.mirrorMaker2.resource $v.mirrorMaker2.existingConfigMap -}}
{{- $_ := set $own "mm2" (dict "strimzi" (list "/etc/mm2slo/mirrormaker2.yaml") "secrets" $secrets) -}}
{{- end -}}
{{- $config := mergeOverwrite $own (deepCopy $v.config) -}}
{{- $_ := set $config.report "hosts" $hosts -}}
{{- toYaml $config -}}
{{- end }}

{{/* The volumes and mounts of configuration, secrets and state: root, component, hasState. */}}
{{- define "mm2slo.mounts" -}}
- {name: config, mountPath: /etc/mm2slo, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .hasState }}
- {name: state, mountPath: /var/lib/mm2slo}
{{- end }}
{{- range $index, $each := (include "mm2slo.secretNames" . | fromJson).names }}
- {name: secret-{{ $index }}, mountPath: /run/secrets/mm2slo/{{ $each }}, readOnly: true}
{{- end }}
{{- with .root.Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "mm2slo.volumes" -}}
- name: config
  projected:
    sources:
      - configMap: {name: {{ include "mm2slo.fullname" .root }}}
      {{- with .root.Values.mirrorMaker2.existingConfigMap }}
      - configMap:
          name: {{ . }}
          items: [{key: {{ $.root.Values.mirrorMaker2.key | quote }}, path: mirrormaker2.yaml}]
      {{- end }}
- name: tmp
  emptyDir: {}
{{- if .hasState }}
- name: state
  {{- if .root.Values.store.persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ .root.Values.store.persistence.existingClaim | default (include "mm2slo.fullname" .root) }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end }}
{{- range $index, $each := (include "mm2slo.secretNames" . | fromJson).names }}
- name: secret-{{ $index }}
  secret: {secretName: {{ $each }}, defaultMode: 0440}
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* `securityContext` of pods; OpenShift assigns the ids itself. */}}
{{- define "mm2slo.podSecurityContext" -}}
{{- $isOpenShift := or .Values.openshift (.Capabilities.APIVersions.Has "security.openshift.io/v1") -}}
{{- $isOpenShift | ternary (omit (.Values.podSecurityContext | default dict) "fsGroup" "runAsUser" "runAsGroup") .Values.podSecurityContext | toYaml -}}
{{- end }}

{{/*
A pod template: root, component, args, and optionally settings (extraArgs, resources), image, port
(of a service; a job has none), hasState, env.
*/}}
{{- define "mm2slo.pod" -}}
{{- $root := .root -}}
{{- $v := .root.Values -}}
{{- $scheme := empty $v.tls.secretName | ternary "HTTP" "HTTPS" -}}
metadata:
  labels:
    {{- include "mm2slo.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $v.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/config: {{ include "mm2slo.configData" $root | sha256sum }}
    {{- with $v.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  {{- $usesApi := and (eq .component "audit") (include "mm2slo.sparkOnKubernetes" $root) }}
  serviceAccountName: {{ include "mm2slo.serviceAccount" $root }}{{ if $usesApi }}-audit{{ end }}
  automountServiceAccountToken: {{ empty $usesApi | ternary "false" "true" }}
  enableServiceLinks: false
  {{- if not .port }}
  restartPolicy: Never
  {{- end }}
  {{- with $v.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext: {{- include "mm2slo.podSecurityContext" $root | nindent 4 }}
  {{- range $key := list "nodeSelector" "tolerations" "hostAliases" "priorityClassName" }}
  {{- with get $v $key }}
  {{ $key }}: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  {{- $sharesVolume := and .hasState (not .port) $v.report.enabled $v.store.persistence.enabled (eq $v.store.persistence.accessMode "ReadWriteOnce") }}
  {{- $affinity := deepCopy ($v.affinity | default dict) }}
  {{- if $sharesVolume }}
  {{- $required := "requiredDuringSchedulingIgnoredDuringExecution" }}
  {{- $labels := printf "%s\napp.kubernetes.io/component: report" (include "mm2slo.selector" $root) | fromYaml }}
  {{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) }}
  {{- $near := $affinity.podAffinity | default dict }}
  {{- $near = set $near $required (append (get $near $required | default list) $term) }}
  {{- $_ := set $affinity "podAffinity" $near }}
  {{- end }}
  {{- with $affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .port }}
  {{- with $v.topologySpreadConstraints }}
  topologySpreadConstraints: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  terminationGracePeriodSeconds: {{ empty .port | ternary 70 15 }}
  containers:
    - name: {{ .component }}
      {{- $image := .image | default $v.image }}
      image: {{ include "mm2slo.image" (dict "root" $root "image" $image) }}
      imagePullPolicy: {{ $image.pullPolicy }}
      args: {{- concat .args (.settings.extraArgs | default list) | toYaml | nindent 8 }}
      env:
        - {name: MM2SLO_CONFIG, value: /etc/mm2slo/mm2slo.yaml}
        {{- if and .hasState $v.store.postgresql.secretName }}
        - name: PGPASSWORD
          valueFrom: {secretKeyRef: {name: {{ $v.store.postgresql.secretName }}, key: {{ $v.store.postgresql.key }}}}
        {{- end }}
        {{- with concat (.env | default list) ($v.extraEnv | default list) }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- with $v.extraEnvFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if .port }}
      ports: [{name: {{ .component }}, containerPort: {{ .port }}}]
      startupProbe:
        httpGet: {path: /healthz, port: {{ .component }}, scheme: {{ $scheme }}}
        {{- with $v.startupProbe }}{{ toYaml . | nindent 8 }}{{ end }}
      livenessProbe:
        httpGet: {path: /healthz, port: {{ .component }}, scheme: {{ $scheme }}}
        {{- with $v.livenessProbe }}{{ toYaml . | nindent 8 }}{{ end }}
      readinessProbe:
        httpGet: {path: /readyz, port: {{ .component }}, scheme: {{ $scheme }}}
        {{- with $v.readinessProbe }}{{ toYaml . | nindent 8 }}{{ end }}
      {{- end }}
      securityContext: {{- toYaml $v.securityContext | nindent 8 }}
      resources: {{- toYaml .settings.resources | nindent 8 }}
      volumeMounts: {{- include "mm2slo.mounts" . | nindent 8 }}
        {{- if $usesApi }}
        - {name: executor, mountPath: /etc/mm2slo-executor, readOnly: true}
        {{- end }}
    {{- if .port }}
    {{- with $v.extraContainers }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- end }}
  volumes: {{- include "mm2slo.volumes" . | nindent 4 }}
    {{- if $usesApi }}
    - name: executor
      configMap: {name: {{ include "mm2slo.fullname" $root }}-executor}
    {{- end }}
{{- end }}
