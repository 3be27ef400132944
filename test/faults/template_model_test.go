package faults

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// The drivers that templates name. Each has at least one template at any time,
// if only for no node, so that it is always known whose claims are prepared.
const (
	gpuDriver    = "gpu.example.com"
	nicDriver    = "nic.example.com"
	fabricDriver = "fabric.example.com"
)

// The labels of nodes and Pods that templates and the configuration go by.
const (
	kindLabel    = "kind"
	tierLabel    = "tier"
	rackLabel    = "rack"
	retiredLabel = "retired"
	holdLabel    = "hold"
)

// nowhere is a kind that no node has.
const nowhere = "nowhere"

// poolTemplate is a ResourcePoolTemplate as the oracle sees it.
type poolTemplate struct {
	name, driver string
	// kinds are those of the nodes that have it; tier may be empty.
	kinds    []string
	tier     string
	priority int
	device   string
	count    int
	revision int
	shared   bool
	// pool is the name of a shared pool, if that is not the template's.
	pool string
	// created is when it was created as an object, in seconds, and 0 where it was not.
	created int64
	// uid is that of the object that owns the shared pool, if it is one.
	uid types.UID
}

// poolName is the name of the pool that nodes share.
func (t *poolTemplate) poolName() string { return cmp.Or(t.pool, t.name) }

// templates are all that there are, by name.
type templates map[string]poolTemplate

// anchor begins the names of templates for no node that are there all the time.
const anchor = "anchor-"

// anchors have every driver always be named, so that its claims are the sidecar's.
func anchors() templates {
	all := templates{}
	for _, driver := range []string{gpuDriver, nicDriver, fabricDriver} {
		name := anchor + strings.TrimSuffix(driver, ".example.com")
		all[name] = poolTemplate{name: name, driver: driver, kinds: []string{nowhere}, device: "none", count: 1, revision: 1}
	}
	return all
}

func initialTemplates() templates {
	return templates{
		"gpu":    {name: "gpu", driver: gpuDriver, kinds: []string{"a", "b"}, device: "gpu", count: 8, revision: 1},
		"aux":    {name: "aux", driver: gpuDriver, kinds: []string{"a"}, device: "aux", count: 2, revision: 1},
		"gold":   {name: "gold", driver: gpuDriver, kinds: []string{"a", "b", "c"}, tier: "gold", priority: 10, device: "gold", count: 16, revision: 1},
		"nic":    {name: "nic", driver: nicDriver, kinds: []string{"b", "c"}, device: "nic", count: 4, revision: 1},
		"fabric": {name: "fabric", driver: fabricDriver, kinds: []string{"c"}, device: "port", count: 40, revision: 1, shared: true},
	}
}

const document = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: ResourcePoolTemplate
metadata: {name: %s}
spec:
  driver: %s
  priority: %d
  nodeSelector:
    nodeSelectorTerms:
    - matchExpressions: [%s]
  %s
  devices:
  - name: %s
    count: %d
    attributes: {revision: {int: %d}, index: {int: "{{ .Index }}"}, rack: '%s'}
  claimStatus: {data: {node: "{{ .Node.metadata.name }}", device: "{{ .Result.device }}"%s}}
---
`

func (t *poolTemplate) yaml() string {
	selector := fmt.Sprintf("{key: %s, operator: In, values: [%s]}", kindLabel, strings.Join(t.kinds, ", "))
	if t.tier != "" {
		selector += fmt.Sprintf(", {key: %s, operator: In, values: [%s]}", tierLabel, t.tier)
	}
	shared, pods, rack := "", "", `{{ or (index .Node.metadata.labels "`+rackLabel+`") "none" }}`
	if t.shared {
		shared, pods, rack = "sharedWith: {allNodes: true}\n  poolName: "+t.poolName(), `, pods: "{{ range .Pods }}{{ .name }} {{ end }}"`, "none"
	}
	return fmt.Sprintf(document, t.name, t.driver, t.priority, selector, shared, t.device, t.count, t.revision, rack, pods)
}

// yaml is all of them, for the ConfigMap.
func (t templates) yaml() string {
	var all strings.Builder
	for _, one := range t {
		all.WriteString(one.yaml())
	}
	return all.String()
}

// configuration is in the ConfigMap.
var configuration = fmt.Sprintf(configurationDocument, "faults", settingText[retireWhen])
