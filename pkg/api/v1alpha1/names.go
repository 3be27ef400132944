package v1alpha1

// The labels, annotations and conditions that kwok-dra, its Stages and its users
// tell each other with. docs/reference/conditions.md is made from these comments:
// the first sentence says what has the name, the others what it means.
const (
	// ManagedByLabel is a label of ResourceSlices and DeviceClasses. With the value
	// `kwok-dra`, kwok-dra made the object, repairs it when it is edited, and deletes it.
	ManagedByLabel = GroupName + "/managed-by"

	// InstallationAnnotation is an annotation of ResourceSlices and DeviceClasses that
	// kwok-dra made. It names the installation that they belong to, see --installation.
	// Other installations leave the object alone; without the annotation, the first one
	// that needs the object takes it over.
	InstallationAnnotation = GroupName + "/installation"

	// ProfileLabel is a label of Nodes. Its value is the name of the profile whose
	// devices the node has.
	ProfileLabel = GroupName + "/profile"

	// ScaleLabel is a label of what `kwok-dractl scale` and `generate` make. Its value on
	// Nodes is the target; DeviceClasses and templates, which targets share, have an empty one.
	ScaleLabel = GroupName + "/scale"

	// ScaleUsesAnnotation is an annotation of Nodes and templates with the label `scale`. It
	// names the templates and DeviceClasses that these use, which are kept while they are there.
	ScaleUsesAnnotation = GroupName + "/scale-uses"

	// DeviceTaintsAnnotation is an annotation of Nodes. It taints devices:
	// `[driver/]device:key[=value]:effect`, separated by commas.
	DeviceTaintsAnnotation = GroupName + "/device-taints"

	// ResourceSlicesAnnotation is an annotation of Karpenter's NodeOverlays. It holds
	// the list `spec.resourceSlices` in YAML, where the definition in the cluster does
	// not have that field.
	ResourceSlicesAnnotation = GroupName + "/resource-slices"

	// ContainerViewAnnotation is an annotation of kwok's Logs and Exec objects that
	// kwok-dra writes with --container-view. It names the directory of the files that
	// they show.
	ContainerViewAnnotation = GroupName + "/container-view"

	// UsageGPUAnnotation is an annotation of Pods. It says how busy each device of the Pod
	// is while the Pod runs, in percent: `75`, `ramp(FROM, TO, DURATION)`,
	// `wave(MIN, MAX, PERIOD)` or `noise(MEAN, SPREAD)`. Metrics of devices show it.
	UsageGPUAnnotation = GroupName + "/usage-gpu"

	// UsageMemoryAnnotation is an annotation of Pods. It says how much of the memory of each
	// device the Pod uses, as a quantity or a percentage: `40Gi`, `50%`, or one of the
	// functions of `usage-gpu` of these.
	UsageMemoryAnnotation = GroupName + "/usage-memory"

	// PluginRegistered is a condition of Nodes, written by Stages. True: the node's
	// DRA plugin is up. Unknown: it is down, and the kubelet waits 30 s for it to come
	// back. False: it is gone. Reasons: `PluginRegistered`, `PluginUnregistered`,
	// `PluginCrashed`, `KubeletRestarted`.
	PluginRegistered = GroupName + "/PluginRegistered"

	// KubeletRestarted is a condition of Nodes, written by Stages. True: the restart
	// of the kubelet has been played, and is not played again. False: the next one can
	// be played.
	KubeletRestarted = GroupName + "/KubeletRestarted"

	// FeaturesDeclared is a condition of Nodes, written by Stages. True: the node has
	// declared its features in `status.declaredFeatures`, and does not do it again.
	FeaturesDeclared = GroupName + "/FeaturesDeclared"

	// PrepareResources is a condition of Pods, written by Stages. True: kwok-dra
	// prepares the claims of the Pod now. False: preparing fails with this reason and
	// message.
	PrepareResources = GroupName + "/PrepareResources"

	// UnprepareResources is a condition of Pods, written by Stages. True: kwok-dra
	// unprepares the claims of the Pod now. False: unpreparing has failed, and is tried
	// again after 10 s.
	UnprepareResources = GroupName + "/UnprepareResources"
)

// ProfileLabelPrefix is a label of Nodes with the devices of several profiles. There is one
// for each profile, whose name follows, and it has no value.
const ProfileLabelPrefix = "profile." + GroupName + "/"

// ManagedByValue is the value of ManagedByLabel, and the name under which kwok-dra
// shows in events and user agents.
const ManagedByValue = "kwok-dra"

// PluginCrashed is the reason of PluginRegistered for a plugin that is down but has
// not unregistered.
const PluginCrashed = "PluginCrashed"

// MaxPluginsDir is how long the path of the directory for plugins may be: below it are the folder of a
// node, the folder plugins_registry and a socket, of whose path 107 characters fit into an address.
const MaxPluginsDir = 36
