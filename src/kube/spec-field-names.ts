// The names of the fields that the specs of the Kubernetes kinds krane writes can have, as far as this krane knows them:
// those of Kubernetes 1.36, Cilium 1.20 and the experimental channel of the Gateway API 1.6. Cluster tests compare them with
// what is published.
//
// A live field with another name comes from a newer server. Unless a field manager wrote it, it is taken for a default
// that this krane does not know yet, and is left alone.

const builtIn = `
  accessModes action activeDeadlineSeconds add affinity allocateLoadBalancerNodePorts allowPrivilegeEscalation
  annotations apiGroup apiVersion appArmorProfile appProtocol args audience automountServiceAccountToken
  awsElasticBlockStore azureDisk azureFile blockOwnerDeletion cachingMode capabilities cephfs certificateChainPath
  chapAuthDiscovery chapAuthSession cinder claimName claims clientIP clusterIP clusterIPs clusterTrustBundle
  command conditionType configMap configMapKeyRef configMapRef containerName containerPort containers controller
  creationTimestamp credentialBundlePath csi data dataSource dataSourceRef datasetName datasetUUID defaultMode
  deletionGracePeriodSeconds deletionTimestamp devicePath directory diskName diskURI divisor dnsConfig dnsPolicy
  downwardAPI driver drop effect emptyDir enableServiceLinks endpoints env envFrom ephemeral ephemeralContainers
  exec exitCodes expirationSeconds externalIPs externalName externalTrafficPolicy failureThreshold fc fieldPath
  fieldRef fieldsType fieldsV1 fileKeyRef finalizers flexVolume flocker fsGroup fsGroupChangePolicy fsType gateway
  gcePersistentDisk generateName generation gitRepo glusterfs gmsaCredentialSpec gmsaCredentialSpecName group grpc
  healthCheckNodePort host hostAliases hostIP hostIPC hostNetwork hostPID hostPath hostPort hostProcess hostUsers
  hostname hostnameOverride hostnames httpGet httpHeaders image imagePullPolicy imagePullSecrets immutable
  initContainers initialDelaySeconds initiatorName internalTrafficPolicy ip ipFamilies ipFamilyPolicy iqn iscsi
  iscsiInterface items key keyPath keyType keyring kind labelSelector labels level lifecycle limits livenessProbe
  loadBalancerClass loadBalancerIP loadBalancerSourceRanges localhostProfile lun managedFields manager
  matchExpressions matchFields matchLabelKeys matchLabels maxExpirationSeconds maxSkew maxSurge maxUnavailable
  medium metadata minAvailable minDomains minReadySeconds mismatchLabelKeys mode monitors mountPath
  mountPropagation name nameservers namespace namespaceSelector namespaces nfs nodeAffinity nodeAffinityPolicy
  nodeName nodePort nodePublishSecretRef nodeSelector nodeSelectorTerms nodeTaintsPolicy operation operator
  optional options os overhead ownerReferences partition path paused pdID pdName periodSeconds
  persistentVolumeClaim photonPersistentDisk podAffinity podAffinityTerm podAntiAffinity podCertificate
  podGroupName pool port portals ports portworxVolume postStart preStop preemptionPolicy preference
  preferredDuringSchedulingIgnoredDuringExecution prefix priority priorityClassName privileged procMount
  progressDeadlineSeconds projected protectionDomain protocol publishNotReadyAddresses pullPolicy quobyte rbd
  readOnly readOnlyRootFilesystem readinessGates readinessProbe recursiveReadOnly reference registry replicas
  repository request requests requiredDuringSchedulingIgnoredDuringExecution resizePolicy resource
  resourceClaimName resourceClaimTemplateName resourceClaims resourceFieldRef resourceName resourceVersion
  resources restartPolicy restartPolicyRules revision revisionHistoryLimit role rollingUpdate runAsGroup
  runAsNonRoot runAsUser runAsUserName runtimeClassName scaleIO schedulerName schedulingGates schedulingGroup
  scheme seLinuxChangePolicy seLinuxOptions searches seccompProfile seconds secret secretFile secretKeyRef
  secretName secretRef securityContext selector selfLink server service serviceAccount serviceAccountName
  serviceAccountToken sessionAffinity sessionAffinityConfig setHostnameAsFQDN shareName shareProcessNamespace
  signerName sizeLimit sleep sources spec sslEnabled startupProbe stdin stdinOnce stopSignal storageClassName
  storageMode storagePolicyID storagePolicyName storagePool storageos strategy stringData subPath subPathExpr
  subdomain subresource successThreshold supplementalGroups supplementalGroupsPolicy sysctls system
  targetContainerName targetPort targetPortal targetWWNs tcpSocket template tenant terminationGracePeriodSeconds
  terminationMessagePath terminationMessagePolicy time timeoutSeconds tolerationSeconds tolerations topologyKey
  topologySpreadConstraints trafficDistribution tty type uid unhealthyPodEvictionPolicy user userAnnotations value
  valueFrom values volume volumeAttributes volumeAttributesClassName volumeClaimTemplate volumeDevices volumeID
  volumeMode volumeMounts volumeName volumeNamespace volumePath volumes vsphereVolume weight whenUnsatisfiable
  windowsOptions workingDir wwids
`;

const cilium = `
  authentication aws certificate cidr cidrGroupRef cidrGroupSelector description dns egress egressDeny
  enableDefaultDeny endPort endpointSelector envoyConfig except family fields fromCIDR fromCIDRSet fromEndpoints
  fromEntities fromGroups fromNodes fromRequires headerMatches headers host http icmps ingress ingressDeny
  k8sService k8sServiceSelector key kind labels listener log matchExpressions matchLabels matchName matchPattern
  method mismatch mode name namespace nodeSelector operator originatingTLS path port ports priority privateKey
  protocol region rules secret securityGroupsIds securityGroupsNames selector serverNames serviceName source spec
  specs terminatingTLS toCIDR toCIDRSet toEndpoints toEntities toFQDNs toGroups toNodes toPorts toRequires
  toServices trustedCA type value values
`;

const gatewayApi = `
  absoluteTimeout add allowCredentials allowHeaders allowMethods allowOrigins allowedHeaders
  allowedResponseHeaders attempts backendRef backendRefs backendRequest backoff codes cookieConfig cors
  denominator exposeHeaders extensionRef externalAuth filters forwardBody fraction group grpc headers hostname
  hostnames http kind lifetimeType matches maxAge maxSize method name namespace numerator parentRefs path
  percent port protocol queryParams remove replaceFullPath replacePrefixMatch request requestHeaderModifier
  requestMirror requestRedirect responseHeaderModifier retry rules scheme sectionName sessionName
  sessionPersistence set statusCode timeouts type urlRewrite useDefaultGateways value weight
`;

/** Fields that hold a map: the names below them are data, not fields. */
const maps = `
  annotations data labels limits matchLabels nodeSelector options overhead requests selector stringData
  userAnnotations volumeAttributes
`;

export const knownFieldNames: ReadonlySet<string> = new Set([
  ...words(builtIn),
  ...words(cilium),
  ...words(gatewayApi),
]);
export const mapFieldNames: ReadonlySet<string> = new Set(words(maps));

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}
