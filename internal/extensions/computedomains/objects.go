package computedomains

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kwok-dra/kwok-dra/internal/observe/cached"
)

// The names that NVIDIA's driver uses.
const (
	driverName = "compute-domain.nvidia.com"
	// domainLabel names the ComputeDomain of a Node, and of what the controller makes for one, by its UID.
	domainLabel = "resource.nvidia.com/computeDomain"
	// cliqueLabel names the clique of a daemon Pod, and of a ComputeDomainClique.
	cliqueLabel = "resource.nvidia.com/computeDomain.cliqueID"
	// fabricLabel names the clique of a Node.
	fabricLabel = "nvidia.com/gpu.clique"

	channelConfig = "ComputeDomainChannelConfig"
	daemonConfig  = "ComputeDomainDaemonConfig"

	statusReady    = "Ready"
	statusNotReady = "NotReady"
)

var (
	apiVersion      = schema.GroupVersion{Group: "resource.nvidia.com", Version: "v1beta1"}
	domainsResource = apiVersion.WithResource("computedomains")
	cliquesResource = apiVersion.WithResource("computedomaincliques")
)

// maxDaemonsVariable tells a daemon how many a clique may have, of which defaultMaxDaemons is the number for an NVL72.
const (
	maxDaemonsVariable = "MAX_NODES_PER_IMEX_DOMAIN"
	defaultMaxDaemons  = 18
)

// domain is what is kept of a ComputeDomain.
type domain struct {
	cached.Meta
	// ready says of each node in the status whether it is ready.
	ready map[string]bool
}

// clique is what is kept of a ComputeDomainClique.
type clique struct {
	cached.Meta
	object  *unstructured.Unstructured
	daemons []daemonEntry
}

// daemonEntry is an entry of a ComputeDomainClique, as its definition has it.
type daemonEntry struct {
	NodeName  string `json:"nodeName"`
	IPAddress string `json:"ipAddress"`
	CliqueID  string `json:"cliqueID"`
	Index     int    `json:"index"`
	Status    string `json:"status,omitempty"`
}

// The indices of the caches.
const (
	byUID  = "uid"
	byName = "name"
)

var (
	domainIndexers = cache.TypedIndexers[*domain]{byUID: func(d *domain) ([]string, error) { return []string{string(d.UID)}, nil }}
	cliqueIndexers = cache.TypedIndexers[*clique]{byName: func(c *clique) ([]string, error) { return []string{c.Name}, nil }}
)

// observeDomain reads a ComputeDomain. Nodes in a form that is not known count as not ready.
func observeDomain(object *unstructured.Unstructured) *domain {
	observed := &domain{Meta: cached.MetaOf(object), ready: map[string]bool{}}
	nodes, _, _ := unstructured.NestedSlice(object.Object, "status", "nodes")
	for _, node := range nodes {
		if fields, ok := node.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(fields, "name")
			status, _, _ := unstructured.NestedString(fields, "status")
			observed.ready[name] = status == statusReady
		}
	}
	return observed
}

// observeClique reads a ComputeDomainClique. One in a form that is not known counts as empty.
func observeClique(object *unstructured.Unstructured) *clique {
	var fields struct {
		Daemons []daemonEntry `json:"daemons"`
	}
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &fields)
	object.SetManagedFields(nil)
	return &clique{cached.MetaOf(object), object, fields.Daemons}
}

// isReady reports whether a clique says that the daemon of a node is ready.
func (c *clique) isReady(node string) bool {
	for _, entry := range c.daemons {
		if entry.NodeName == node {
			return entry.Status == statusReady
		}
	}
	return false
}

// domainOf returns the UID of the ComputeDomain for which a claim configures an allocated device, by parameters of the
// given kind, or "".
func domainOf(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult, kind string) string {
	if result.Driver != driverName {
		return ""
	}
	uid := ""
	for _, config := range resourceclaim.ConfigForResult(claim.Status.Allocation.Devices.Config, *result) {
		if config.Opaque == nil || config.Opaque.Driver != driverName {
			continue
		}
		var parameters struct {
			metav1.TypeMeta
			DomainID string `json:"domainID"`
		}
		if json.Unmarshal(config.Opaque.Parameters.Raw, &parameters) == nil && parameters.Kind == kind {
			uid = parameters.DomainID // the last one wins, as with the driver
		}
	}
	return uid
}

// cliqueName returns the name of a node's ComputeDomainClique in a ComputeDomain, or "" for a node without a fabric. It
// returns an error if the node's label cannot be in a name: a label may have capitals and underscores, a name may not.
func cliqueName(domain string, node *corev1.Node) (string, error) {
	fabric := node.Labels[fabricLabel]
	if fabric == "" {
		return "", nil
	}
	name := domain + "." + fabric
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("node %s: label %s: %q cannot be in the name of a ComputeDomainClique: %s", node.Name, fabricLabel, fabric, strings.Join(problems, "; "))
	}
	return name, nil
}

// splitCliqueName is the reverse of cliqueName. A UID has no dot.
func splitCliqueName(name string) (domain, clique string) {
	domain, clique, _ = strings.Cut(name, ".")
	return domain, clique
}

// maxDaemonsOf is how many daemons a clique may have, as a daemon Pod is told.
func maxDaemonsOf(pod *corev1.Pod) int {
	for _, container := range pod.Spec.Containers {
		for _, variable := range container.Env {
			if most, err := strconv.Atoi(variable.Value); variable.Name == maxDaemonsVariable && err == nil {
				return most
			}
		}
	}
	return defaultMaxDaemons
}

// ownerOf is the reference by which a daemon Pod owns its clique, which goes with the last of its daemons.
func ownerOf(pod *corev1.Pod) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// cliqueKey identifies a clique. It is empty if there is none.
type cliqueKey = types.NamespacedName
