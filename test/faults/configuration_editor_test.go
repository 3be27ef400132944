package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// editor edits the configuration in the cluster, and the model with it.
type editor struct {
	world *world
	planner
	// nodes are those there are while it edits; concerned are the pools of which
	// something else was wanted in between.
	nodes     map[string]*corev1.Node
	concerned map[poolKey]bool
	// held are the pools that stay while a document is refused.
	held []poolKey
	// done is what was done, to be told.
	done []string
}

// timing is in the file, so that it is always in force: a kubelet would retry in minutes.
const timing = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: KwokDRAConfiguration
metadata: {name: timing}
spec:
  prepareWhen: {matchExpressions: [{key: .metadata.labels.` + holdLabel + `, operator: DoesNotExist}]}
  retryInterval: 1s
---
`

const configurationDocument = `
apiVersion: dra.kwok.x-k8s.io/v1alpha1
kind: KwokDRAConfiguration
metadata: {name: %s}
spec: {%s}
---
`

var settingText = map[string]string{
	retireWhen: "retireWhen: {matchExpressions: [{key: .metadata.labels." + retiredLabel + ", operator: Exists}]}",
	podStatus:  "podStatus: Minimal",
}

// settingsYAML is a KwokDRAConfiguration with the fields that are set, if any.
func (c *content) settingsYAML(name string) string {
	if len(c.settings) == 0 {
		return ""
	}
	var fields []string
	for _, setting := range c.settings {
		fields = append(fields, settingText[setting])
	}
	return fmt.Sprintf(configurationDocument, name, strings.Join(fields, ", "))
}

// objectYAML is an object that the API server takes. What is refused is a name, or a
// value, that the schema does not know the rules of.
func (c *content) objectYAML(kind, name string) string {
	text := c.settingsYAML(name)
	if t, ok := c.templates[name]; ok && kind == kindTemplate {
		if c.refused {
			t.device += "_"
		}
		return t.yaml()
	}
	if c.refused {
		text = fmt.Sprintf(configurationDocument, name, "podStatus: Nonsense")
	}
	return text
}

// nonsense has a whole carrier be refused.
const nonsense = "kind: Nonsense\n"

func (c *content) data() map[string]string {
	data := map[string]string{"configuration": c.settingsYAML("settings"), "templates": c.templates.yaml()}
	if c.refused {
		data["nonsense"] = nonsense
	}
	return data
}

// writeFile writes the file that sidecars are started with.
func (rs *replicas) writeFile(c content) error {
	return os.WriteFile(rs.file, []byte(timing+c.settingsYAML("settings")+c.templates.yaml()), 0o600)
}

// wanted are the pools as they are to be where no sidecar has been started since.
func (e *editor) wanted() map[poolKey]wantedPool {
	s := &state{inForce: inForce{selection: e.world.setup.selection}, found: found{nodes: e.nodes}}
	now := e.forces()[0]
	return s.in(&now).wantedPools()
}

// concern notes the pools of which something else is wanted than before, and those
// that nothing holds any more.
func (e *editor) concern(before map[poolKey]wantedPool) {
	after := e.wanted()
	if now := e.forces()[0]; !now.held {
		e.excuse(e.held)
	}
	e.excuse(different(before, after))
}

// excuse has pools change without being wrong.
func (e *editor) excuse(pools []poolKey) {
	for _, key := range pools {
		e.concerned[key] = true
	}
}

// concernAlone notes the pools of which something else is wanted where a sidecar sees one
// change without the others: each carrier has a watch of its own, which may lag.
func (e *editor) concernAlone(changes []change) {
	before, wanted := e.carriers, e.wanted()
	for _, one := range changes {
		e.carriers = e.apply(one)
		e.excuse(different(wanted, e.wanted()))
		e.carriers = before
	}
}

// different are the pools that are not the same in both, or in one only.
func different(before, after map[poolKey]wantedPool) []poolKey {
	var keys []poolKey
	for _, all := range []map[poolKey]wantedPool{before, after} {
		for key := range all {
			if !reflect.DeepEqual(before[key], after[key]) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// change makes a change in the cluster and in the model.
func (e *editor) change(ctx context.Context, one change) error {
	before := e.wanted()
	defer func() { e.concern(before) }()
	e.carriers = e.apply(one)
	kind, name, isObject := strings.Cut(one.name, "/")
	switch {
	case one.name == fileSource:
		return errors.Join(e.world.writeFile(*one.says), e.restart(true))
	case isObject && one.says == nil:
		return e.world.deleteObject(ctx, kind, name)
	case isObject:
		object, err := e.world.applyObject(ctx, kind, one.says.objectYAML(kind, name))
		if err != nil {
			return fmt.Errorf("apply %s: %w", one.name, err)
		}
		created := e.carriers[one.name]
		created.created, created.uid = object.GetCreationTimestamp().Unix(), object.GetUID()
		e.carriers[one.name] = created
		return nil
	case one.says == nil:
		return persist(ctx, func(ctx context.Context) error {
			return e.world.client.CoreV1().ConfigMaps(namespace).Delete(ctx, configMap, metav1.DeleteOptions{})
		})
	}
	return persist(ctx, func(ctx context.Context) error { return e.world.replaceConfigMap(ctx, one.says.data()) })
}

// replaceConfigMap has the ConfigMap have these keys and no others.
func (c clients) replaceConfigMap(ctx context.Context, data map[string]string) error {
	configMaps := c.client.CoreV1().ConfigMaps(namespace)
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap}, Data: data}
	_, err := configMaps.Update(ctx, wanted, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = configMaps.Create(ctx, wanted, metav1.CreateOptions{})
	}
	return err
}

func (c clients) objects(kind string) dynamic.ResourceInterface {
	return c.dynamic.Resource(v1alpha1.GroupVersion.WithResource(strings.ToLower(kind) + "s"))
}

// applyObject creates or changes an object. Its definition may be about to come.
func (c clients) applyObject(ctx context.Context, kind, text string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(strings.TrimSuffix(text, "---\n")), &object.Object); err != nil {
		return nil, err
	}
	var applied *unstructured.Unstructured
	return applied, persist(ctx, func(ctx context.Context) error {
		var err error
		applied, err = c.objects(kind).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "faults", Force: true})
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no definition yet: %s", err.Error())
		}
		return err
	})
}

func (c clients) deleteObject(ctx context.Context, kind, name string) error {
	return persist(ctx, func(ctx context.Context) error { return c.objects(kind).Delete(ctx, name, metav1.DeleteOptions{}) })
}

// restart ends one sidecar, or all one after the other, and starts another in its
// place. What those have forgotten that were there before is held from then on. Twins
// that remember different things would write their statuses in turn.
func (e *editor) restart(all bool) error {
	before := e.wanted()
	all = all || e.world.setup.areTwins() || len(e.world.running()) == 1
	e.carriers = e.restarted(all)
	if now := e.forces()[0]; now.held {
		e.held = append(e.held, different(before, e.wanted())...)
	}
	numbers := []int{e.random.IntN(mostReplicas)}
	if all {
		numbers = nil
		for i := range e.world.running() {
			numbers = append(numbers, i)
		}
	}
	for _, number := range numbers {
		end := pick(e.random, (*sidecar.Process).Stop, (*sidecar.Process).Stop, (*sidecar.Process).Kill)
		if err := e.world.replace(number, end); err != nil {
			return err
		}
	}
	e.done = append(e.done, fmt.Sprintf("restart %d", len(numbers)))
	return nil
}

// newEditor begins with what the workload has left.
func newEditor(w *world, random *rand.Rand, all templates) *editor {
	return &editor{world: w, planner: planner{random, initialCarriers(all).settled()}}
}

// watch begins a round: what is wrong already may change without a reason.
func (e *editor) watch(s *state) {
	e.done, e.nodes, e.concerned, e.held = nil, s.nodes, map[poolKey]bool{}, nil
	now := e.forces()[0]
	is := s.in(&now)
	e.held = slices.AppendSeq(is.unwanted(), maps.Keys(is.poolProblems()))
	if now.held {
		return
	}
	e.excuse(e.held)
}

// see has the oracle look at what may be in force.
func (e *editor) see(s *state) {
	all := e.forces()
	*s = *s.in(&all[0])
	if s.others = all[1:]; all[0].held || all[0].frozen {
		s.others = all
	}
}

// names are the names of all objects.
func (e *editor) names() []string {
	var names []string
	for _, one := range e.ordered() {
		if one.rank() < 0 {
			names = append(names, one.name)
		}
	}
	slices.Sort(names)
	return names
}
