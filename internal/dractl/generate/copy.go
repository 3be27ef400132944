package generate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kwok-dra/kwok-dra/internal/dractl/ambiguous"
	"github.com/kwok-dra/kwok-dra/internal/dractl/documents"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

func (c *command) copyNodes(ctx context.Context, all []documents.Document) error {
	read, err := c.readSource(ctx, all)
	if err != nil {
		return err
	}
	progress := c.streams.Progress("copying pools", 0)
	copied, account, notes, err := copyFleet(ctx, read, c.drivers)
	progress.Done()
	if err != nil {
		return err
	}
	most := maxNamed
	if len(copied.templates) == 0 || c.output.Format != output.YAML {
		most = 0 // no comment has the others
	}
	for _, line := range slices.Concat(account.describeLeftOut(most), notes) {
		c.streams.Tell("%s\n", line)
	}
	switch {
	case len(copied.templates) > 0:
	case account.slices == 0:
		return errors.New("there are no ResourceSlices to copy")
	case account.nodes == 0:
		return errors.New("there are ResourceSlices and no Nodes: give both, as kubectl get nodes,resourceslices -o yaml prints them")
	default:
		return errors.New("no ResourceSlice can be copied: the lines above say why")
	}
	objects, err := copied.encodeTemplates()
	if err != nil {
		return err
	}
	if c.output.Format == output.YAML {
		for _, line := range account.describeLeftOut(0) {
			if _, err := fmt.Fprintf(c.streams.Out, "# %s\n", line); err != nil {
				return err
			}
		}
	}
	return c.printObjects(ctx, objects, copied.nodes)
}

// copyFleet copies all that can be copied, and says what is left out and why.
func copyFleet(ctx context.Context, read *source, drivers []string) (*fleet, *account, []string, error) {
	account := newAccount(read)
	pools, left := groupPools(read.slices, drivers)
	account.left = append(account.left, left...)
	for _, driver := range drivers {
		if !slices.ContainsFunc(read.slices, func(slice *resourcev1.ResourceSlice) bool { return slice.Spec.Driver == driver }) {
			account.left = append(account.left, leftOut{kind: "driver", name: driver, reason: "it has no ResourceSlice"})
		}
	}
	nodes := chooseNodes(read, drivers, account)
	names := map[string]bool{}
	for _, node := range read.nodes {
		names[node.Name] = true
	}
	pools = slices.DeleteFunc(pools, func(p *pool) bool {
		isGone := p.nodeName() != "" && !names[p.nodeName()]
		if isGone {
			gone := newLeftOutPool(p, errors.New("its Node is not there"))
			if p.nodeName() != p.name {
				gone.name += " on " + p.nodeName()
			}
			account.left = append(account.left, gone)
		}
		return isGone
	})
	copied, pools, failed, notes, err := newFleet(ctx, nil, nodes, pools)
	if err != nil {
		return nil, nil, nil, err
	}
	account.left = append(account.left, failed...)
	if len(copied.templates) > 0 {
		account.copiedNodes = len(copied.nodes)
	}
	var published []*resourcev1.ResourceSlice
	for _, p := range pools {
		published = append(published, p.slices...)
	}
	account.copiedSlices = len(published)
	return copied, account, append(notes, ambiguous.InSlices(published)...), nil
}

// chooseNodes returns the nodes that have devices of slices of the drivers, and accounts for the others.
func chooseNodes(read *source, drivers []string, account *account) (nodes []*corev1.Node) {
	named := map[string]bool{} // nodes with slices of their own
	var shared []*resourcev1.ResourceSlice
	for _, slice := range read.slices {
		if len(drivers) > 0 && !slices.Contains(drivers, slice.Spec.Driver) {
			continue
		}
		if name := nodeNameOf(slice); name != "" {
			named[name] = true
			continue
		}
		shared = append(shared, slice)
	}
	for _, node := range read.nodes {
		if !named[node.Name] && !slices.ContainsFunc(shared, func(slice *resourcev1.ResourceSlice) bool { return reachesNode(slice, node) }) {
			account.left = append(account.left, leftOut{kind: "Node", name: node.Name, reason: "no ResourceSlice is for it"})
			continue
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// addPools adds the nodes, and templates that yield the pools on them.
func (f *fleet) addPools(ctx context.Context, nodes []*corev1.Node, pools []*pool) error {
	byName := map[string]*corev1.Node{}
	copies := map[string]*corev1.Node{}
	for _, node := range nodes {
		byName[node.Name], copies[node.Name] = node, fakeCopy(node)
	}
	members := map[string]map[string]*member{}
	for _, p := range pools {
		if name := p.nodeName(); name != "" {
			if members[p.driver] == nil {
				members[p.driver] = map[string]*member{}
			}
			m := members[p.driver][name]
			if m == nil {
				m = &member{node: byName[name]}
				members[p.driver][name] = m
			}
			m.pools = append(m.pools, p)
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(members)) {
		if err := f.addDriverPools(ctx, driver, slices.SortedFunc(maps.Values(members[driver]), func(a, b *member) int { return cmp.Compare(a.node.Name, b.node.Name) }), copies); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(copies)) {
		f.nodes = append(f.nodes, copies[name])
	}
	numbers := map[string]int{}
	shared := slices.DeleteFunc(slices.Clone(pools), func(p *pool) bool { return p.nodeName() != "" })
	for _, p := range shared {
		name := fmt.Sprintf("%s-shared-%d", strings.ToLower(p.driver), numbers[p.driver])
		numbers[p.driver]++
		f.addTemplate(ctx, &draft{pools: []*pool{p}, values: &nodeValues{driver: p.driver}}, name)
	}
	return nil
}

// addDriverPools adds the templates for the pools of a driver on nodes, and what the
// nodes need for them.
func (f *fleet) addDriverPools(ctx context.Context, driver string, members []*member, nodes map[string]*corev1.Node) error {
	groups, err := groupMembers(driver, members)
	if err != nil {
		return err
	}
	for number, g := range groups {
		values := &nodeValues{driver: driver, model: f.model, byNode: map[string]map[string][]string{}}
		for i := range g.members[0].pools {
			d := &draft{members: g.members, values: values, number: i, nodes: newLabelSelector(copyPrefix+driver, strconv.Itoa(number))}
			for _, m := range g.members {
				d.pools = append(d.pools, m.pools[i])
			}
			name := strings.ToLower(driver) + "-" + strconv.Itoa(number)
			if len(g.members[0].pools) > 1 {
				name += "-" + strconv.Itoa(i)
			}
			f.addTemplate(ctx, d, name)
		}
		for _, m := range g.members {
			if err := markNode(nodes[m.node.Name], driver, number, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// markNode gives a node the label that the templates of its group select, and the annotation with its values.
func markNode(node *corev1.Node, driver string, number int, values *nodeValues) error {
	node.Labels[copyPrefix+driver] = strconv.Itoa(number)
	if values.byNode[node.Name] == nil {
		return nil
	}
	encoded, err := json.Marshal(values.byNode[node.Name])
	if err != nil {
		return fmt.Errorf("encode the values of node %s: %w", node.Name, err)
	}
	node.Annotations[copyPrefix+driver] = string(encoded)
	return nil
}

// addTemplate adds a template. The template says which device is in which slice only if the default differs.
func (f *fleet) addTemplate(ctx context.Context, d *draft, name string) {
	// Drivers may differ in case alone, or in what looks like the number of a group.
	isUsed := func(t *v1alpha1.ResourcePoolTemplate) bool { return t.Name == name }
	for base, i := name, 2; slices.ContainsFunc(f.templates, isUsed); i++ {
		name = fmt.Sprintf("%s-v%d", base, i)
	}
	made := d.newTemplate(name, d.pools[0].driver)
	same, err := d.isDividedAlike(ctx, made)
	if err == nil && !same {
		d.divided = true
		made = d.newTemplate(name, d.pools[0].driver)
		_, err = d.isDividedAlike(ctx, made) // it may be no valid template
	}
	if err != nil {
		for _, p := range d.pools {
			f.failed[p] = err
		}
		return
	}
	made.Spec.NodeSelector = d.nodes
	f.templates, f.sources = append(f.templates, made), append(f.sources, d.pools)
}

// fakeCopy returns a fake node with all of a node that does not belong to the machine.
func fakeCopy(node *corev1.Node) *corev1.Node {
	made := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	maps.Copy(made.Labels, node.Labels)
	maps.Copy(made.Annotations, node.Annotations)
	delete(made.Annotations, corev1.LastAppliedConfigAnnotation)
	for _, ofNode := range []map[string]string{made.Labels, made.Annotations} { // of a copy of a copy
		maps.DeleteFunc(ofNode, func(key, _ string) bool { return strings.HasPrefix(key, copyPrefix) })
	}
	made.Annotations[lifecycle.NodeAnnotation] = lifecycle.FakeValue
	for _, taint := range node.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			made.Spec.Taints = append(made.Spec.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
	}
	return made
}

// encodeTemplates returns the templates as they are printed.
func (f *fleet) encodeTemplates() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, template := range f.templates {
		encoded, err := json.Marshal(template)
		object := map[string]any{}
		if err == nil {
			err = utiljson.Unmarshal(encoded, &object) // keeps integers whole
		}
		if err != nil {
			return nil, fmt.Errorf("encode template %s: %w", template.Name, err)
		}
		devices, _, _ := unstructured.NestedSlice(object, "spec", "devices")
		for _, device := range devices {
			shortenDevice(device.(map[string]any))
		}
		if err := unstructured.SetNestedSlice(object, devices, "spec", "devices"); err != nil {
			return nil, fmt.Errorf("encode template %s: %w", template.Name, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return objects, nil
}
