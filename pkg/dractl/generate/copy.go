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

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/pkg/dractl/documents"
	"github.com/kwok-dra/kwok-dra/pkg/lifecycle"
)

// fleet is a copy of real nodes.
type fleet struct {
	templates []*v1alpha1.ResourcePoolTemplate
	nodes     []*corev1.Node
	// model is set where templates of one node are for others.
	model *model
}

func (c *command) copy(ctx context.Context) error {
	nodes, published, err := c.read(ctx)
	if err != nil {
		return err
	}
	pools, incomplete := poolsOf(published, c.drivers)
	for _, left := range incomplete {
		c.streams.Tell("%v\n", left)
	}
	if len(pools) == 0 {
		return errors.New("there are no ResourceSlices to copy")
	}
	defer c.streams.Progress("copying pools", 0).Done()
	copied := &fleet{}
	if err := copied.add(ctx, nodes, pools); err != nil {
		return err
	}
	notes, err := copied.compare(ctx, pools)
	for _, note := range notes {
		c.streams.Tell("%v\n", note)
	}
	if err != nil {
		return err
	}
	objects, err := copied.objects()
	if err != nil {
		return err
	}
	return c.print(ctx, objects, copied.nodes)
}

// read reads the nodes and the slices of the cluster, or of files.
func (c *command) read(ctx context.Context) ([]*corev1.Node, []*resourcev1.ResourceSlice, error) {
	if c.fromCluster {
		defer c.streams.Progress("reading the cluster", 0).Done()
		return c.readCluster(ctx)
	}
	all, err := c.files.Read(c.streams)
	if err != nil {
		return nil, nil, err
	}
	objects, err := documents.Objects(all)
	if err != nil {
		return nil, nil, err
	}
	var nodes []*corev1.Node
	var published []*resourcev1.ResourceSlice
	for _, object := range objects {
		switch object.GetKind() {
		case "Node":
			nodes = append(nodes, &corev1.Node{})
			err = object.Into(nodes[len(nodes)-1])
		case "ResourceSlice":
			if version := resourcev1.SchemeGroupVersion.String(); object.GetAPIVersion() != version {
				return nil, nil, fmt.Errorf("%s: ResourceSlice %q: apiVersion: must be %s: get it with kubectl get resourceslices.v1.resource.k8s.io -o yaml", object.Where, object.GetName(), version)
			}
			published = append(published, &resourcev1.ResourceSlice{})
			err = object.Into(published[len(published)-1])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nodes, published, nil
}

func (c *command) readCluster(ctx context.Context) ([]*corev1.Node, []*resourcev1.ResourceSlice, error) {
	client, err := c.reach.Client()
	if err != nil {
		return nil, nil, err
	}
	nodeList, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list nodes: %w", err)
	}
	sliceList, err := client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list slices: %w", err)
	}
	return pointers(nodeList.Items), pointers(sliceList.Items), nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// add adds templates and nodes that yield the pools.
func (f *fleet) add(ctx context.Context, nodes []*corev1.Node, pools []*pool) error {
	byName := map[string]*corev1.Node{}
	for _, node := range nodes {
		byName[node.Name] = node
	}
	members := map[string]map[string]*member{}
	kept := map[string]*corev1.Node{}
	for _, p := range pools {
		name := p.node()
		if name == "" {
			continue
		}
		if byName[name] == nil {
			return fmt.Errorf("slice %s: there is no Node %s: give the nodes too", p.slices[0].Name, name)
		}
		if members[p.driver] == nil {
			members[p.driver] = map[string]*member{}
		}
		members[p.driver][name] = members[p.driver][name].with(byName[name], p)
		if kept[name] == nil {
			kept[name] = fakeCopy(byName[name])
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(members)) {
		if err := f.addDriver(ctx, driver, slices.SortedFunc(maps.Values(members[driver]), byNodeName), kept); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		f.nodes = append(f.nodes, kept[name])
	}
	return f.addShared(ctx, pools)
}

// with is the node, which may be none yet, with a further pool.
func (m *member) with(node *corev1.Node, p *pool) *member {
	if m == nil {
		m = &member{node: node}
	}
	m.pools = append(m.pools, p)
	return m
}

func byNodeName(a, b *member) int { return cmp.Compare(a.node.Name, b.node.Name) }

// addDriver adds the templates for the pools of a driver on nodes, and what the
// nodes need for them.
func (f *fleet) addDriver(ctx context.Context, driver string, members []*member, nodes map[string]*corev1.Node) error {
	groups, err := groupsOf(driver, members)
	if err != nil {
		return err
	}
	for number, g := range groups {
		values := &nodeValues{driver: driver, model: f.model, byNode: map[string]map[string][]string{}}
		if err := f.addGroup(ctx, g.members, values, number); err != nil {
			return err
		}
		for _, m := range g.members {
			if err := mark(nodes[m.node.Name], driver, number, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// addGroup adds the templates of nodes that have the same pools.
func (f *fleet) addGroup(ctx context.Context, members []*member, values *nodeValues, number int) error {
	for i := range members[0].pools {
		d := &draft{members: members, values: values, number: i}
		for _, m := range members {
			d.pools = append(d.pools, m.pools[i])
		}
		name := strings.ToLower(values.driver) + "-" + strconv.Itoa(number)
		if len(members[0].pools) > 1 {
			name += "-" + strconv.Itoa(i)
		}
		if err := f.addTemplate(ctx, d, name); err != nil {
			return err
		}
		f.templates[len(f.templates)-1].Spec.NodeSelector = selecting(copyPrefix+values.driver, strconv.Itoa(number))
	}
	return nil
}

// mark has the templates of a group select a node, and find its values.
func mark(node *corev1.Node, driver string, number int, values *nodeValues) error {
	node.Labels[copyPrefix+driver] = strconv.Itoa(number)
	text, err := values.annotation(node.Name)
	if text != "" {
		node.Annotations[copyPrefix+driver] = text
	}
	return err
}

// addShared adds the templates for the pools that nodes share.
func (f *fleet) addShared(ctx context.Context, pools []*pool) error {
	numbers := map[string]int{}
	for _, p := range pools {
		if p.node() != "" {
			continue
		}
		name := fmt.Sprintf("%s-shared-%d", strings.ToLower(p.driver), numbers[p.driver])
		numbers[p.driver]++
		if err := f.addTemplate(ctx, &draft{pools: []*pool{p}, values: &nodeValues{driver: p.driver}}, name); err != nil {
			return err
		}
	}
	return nil
}

// addTemplate adds a template. It says which device is in which slice only where that is
// not what comes of itself.
func (f *fleet) addTemplate(ctx context.Context, d *draft, name string) error {
	made := d.template(name, d.pools[0].driver)
	same, err := d.dividedAlike(ctx, made)
	if err != nil {
		return err
	}
	if !same {
		d.divided = true
		made = d.template(name, d.pools[0].driver)
	}
	f.templates = append(f.templates, made)
	return nil
}

// fakeCopy is a fake node with what of a node is not of the machine.
func fakeCopy(node *corev1.Node) *corev1.Node {
	made := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	maps.Copy(made.Labels, node.Labels)
	maps.Copy(made.Annotations, node.Annotations)
	delete(made.Annotations, corev1.LastAppliedConfigAnnotation)
	made.Annotations[lifecycle.NodeAnnotation] = lifecycle.FakeValue
	for _, taint := range node.Spec.Taints {
		if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			made.Spec.Taints = append(made.Spec.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
	}
	return made
}

// objects are the templates as they are printed.
func (f *fleet) objects() ([]*unstructured.Unstructured, error) {
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
			brief(device.(map[string]any))
		}
		if err := unstructured.SetNestedSlice(object, devices, "spec", "devices"); err != nil {
			return nil, fmt.Errorf("encode template %s: %w", template.Name, err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: object})
	}
	return objects, nil
}
