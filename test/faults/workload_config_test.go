package faults

import (
	"context"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// configMap is the one with the templates, which the sidecar may read.
const configMap = "kwok-dra"

// configChoices are the kinds of operations that change the configuration.
func (l *configLoad) configChoices() []choice {
	return []choice{
		{5, l.changeTemplate},
		{1, l.breakTemplates},
		{1, l.removeConfigMap},
	}
}

// configure puts the templates as they are now into the ConfigMap.
func (l *configLoad) configure() operation {
	l.history = append(l.history, l.all)
	return l.write("configure", map[string]string{"configuration": configuration, "templates": l.all.yaml()})
}

// breakTemplates puts a document there that is refused, so that the last good
// version stays in force: it is that of before or after, never a mixture.
func (l *configLoad) breakTemplates() operation {
	return l.write("break the templates", map[string]string{"configuration": configuration, "templates": l.all.yaml() + "kind: Nonsense\n"})
}

func (l *configLoad) write(name string, data map[string]string) operation {
	return operation{name, slicesOfFleet, 0, func(ctx context.Context) error { return l.world.writeConfigMap(ctx, data) }}
}

func (c clients) writeConfigMap(ctx context.Context, data map[string]string) error {
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	configMaps := c.client.CoreV1().ConfigMaps(namespace)
	_, err = configMaps.Patch(ctx, configMap, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	// Never an empty one, which would retire everything.
	_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: configMap}, Data: data}, metav1.CreateOptions{})
	return err
}

// removeConfigMap says nothing of what is to exist; the next configure brings it
// back.
func (l *configLoad) removeConfigMap() operation {
	return operation{"delete the ConfigMap", 1, 0, func(ctx context.Context) error {
		return l.world.client.CoreV1().ConfigMaps(namespace).Delete(ctx, configMap, metav1.DeleteOptions{})
	}}
}

// changeTemplate changes one template, and puts all in force.
func (l *configLoad) changeTemplate() operation {
	l.all = maps.Clone(l.all)
	name := pick(l.random, "gpu", "aux", "gold", "nic", "fabric")
	t := l.all[name]
	switch l.random.IntN(4) {
	case 0:
		t.count = pick(l.random, 1, 4, 8, 30, 100, 130, 200)
	case 1:
		t.kinds = pick(l.random, []string{"a"}, []string{"b", "c"}, []string{"a", "b", "c"}, []string{nowhere})
	default:
		t.revision++
	}
	l.all[name] = t
	return l.configure()
}

// enlarge has a template have devices for all Pods, on all nodes.
func (l *configLoad) enlarge(name string) operation {
	l.all = maps.Clone(l.all)
	t := l.all[name]
	t.count, t.kinds = 200, []string{"a", "b", "c", "d"}
	l.all[name] = t
	return l.configure()
}

// ignoreRefused takes what the API server does not let one do for done.
func ignoreRefused(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
