package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/config"
)

// process is what reads the configuration in a sidecar.
type process struct {
	store   *config.Store
	objects *config.Objects
	end     func()
}

// scene is an API server with carriers, and a process that reads them.
type scene struct {
	t      *testing.T
	client *fake.Clientset
	planner
	now *process
	// objects are the custom resources that there are.
	objects map[string]*unstructured.Unstructured
	// versions count what was written.
	versions int64
}

var configMapName = types.NamespacedName{Namespace: namespace, Name: configMap}

// documentsOf has the priority tell versions of a template apart.
func documentsOf(c content) content {
	marked := templates{}
	for name, t := range c.templates {
		t.priority = t.count*100 + t.revision
		marked[name] = t
	}
	c.templates = marked
	return c
}

func (s *scene) object(name string) *unstructured.Unstructured {
	one := s.carriers[name]
	kind, short, _ := strings.Cut(name, "/")
	says := documentsOf(one.newest)
	object := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(s.t, yaml.Unmarshal([]byte(strings.Trim(says.objectYAML(kind, short), "-\n")), &object.Object))
	s.versions++
	object.SetGeneration(s.versions)
	object.SetUID(one.uid)
	object.SetCreationTimestamp(metav1.Unix(one.created, 0))
	return object
}

// start has a process begin that knows only what there is.
func (s *scene) start() {
	s.stop()
	ctx, cancel := context.WithCancel(klog.NewContext(s.t.Context(), klog.Background().V(9)))
	p := &process{store: config.NewStore(config.FilesCarrier, config.ConfigMapCarrier(configMapName), config.ObjectsCarrier)}
	file := documentsOf(s.carriers[fileSource].newest)
	documents, err := config.Decode("file", []byte(timing+file.settingsYAML("settings")+file.templates.yaml()))
	require.NoError(s.t, err)
	require.NoError(s.t, p.store.Replace(config.FilesCarrier, documents))
	recorder := &record.FakeRecorder{}
	watched := config.NewConfigMap(s.client, configMapName, p.store, recorder)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watched.Run(ctx)
	}()
	p.objects = config.NewObjects(p.store, recorder, func() {})
	s.objects = map[string]*unstructured.Unstructured{}
	for name := range s.carriers {
		if strings.HasPrefix(name, kindTemplate+"/") || strings.HasPrefix(name, kindConfiguration+"/") {
			s.objects[name] = s.object(name)
		}
	}
	s.replaceObjects(ctx, p)
	p.end = func() {
		cancel()
		<-done
	}
	s.now = p
	s.pass()
}

func (s *scene) stop() {
	if s.now != nil {
		s.now.end()
	}
}

// pass has all be seen.
func (s *scene) pass() {
	<-time.After(time.Second) // of the bubble's clock
	synctest.Wait()
}

// replaceObjects has a process see the objects that there are.
func (s *scene) replaceObjects(ctx context.Context, p *process) {
	p.objects.Replace(ctx, func() []*unstructured.Unstructured { return slices.Collect(maps.Values(s.objects)) })
}

// change makes a change where the process sees it.
func (s *scene) change(one change) {
	_, there := s.carriers[one.name]
	s.carriers = s.apply(one)
	isObject := strings.Contains(one.name, "/")
	switch {
	case one.name == fileSource:
		s.carriers = s.restarted(true)
		s.start()
	case one.name == mapSource:
		s.changeMap(one.says)
	case isObject && one.says == nil:
		delete(s.objects, one.name)
		s.replaceObjects(s.t.Context(), s.now)
	case isObject:
		if !there {
			s.versions++
			created := s.carriers[one.name]
			created.created, created.uid = s.versions/3, types.UID(fmt.Sprint(s.versions))
			s.carriers[one.name] = created
		}
		s.objects[one.name] = s.object(one.name)
		s.replaceObjects(s.t.Context(), s.now)
	}
	s.pass()
}

func (s *scene) changeMap(says *content) {
	client, ctx := s.client.CoreV1().ConfigMaps(namespace), s.t.Context()
	if says == nil {
		_ = client.Delete(ctx, configMap, metav1.DeleteOptions{})
		return
	}
	marked := documentsOf(*says)
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: configMap}, Data: marked.data()}
	if _, err := client.Update(ctx, wanted, metav1.UpdateOptions{}); err != nil {
		_, err = client.Create(ctx, wanted, metav1.CreateOptions{})
		require.NoError(s.t, err)
	}
}

// describe is what is in force, as the store and as the model say it.
func (s *scene) describe() (is string, may []string) {
	if set := s.now.store.Current(); set != nil {
		found := map[string]int{}
		for _, t := range set.Templates {
			found[t.Name] = int(t.Priority)
		}
		is = fmt.Sprint(found, len(set.Unsettled) > 0)
	}
	for _, f := range s.forces() {
		found := map[string]int{}
		for name, t := range documentsOf(content{templates: f.templates}).templates {
			found[name] = t.priority
		}
		if may = append(may, fmt.Sprint(found, f.held)); f.frozen {
			may = append(may, "")
		}
	}
	return is, may
}

// TestModelAndStore has the model and the store follow the same edits: what is in
// force is one of the things that the model says may be.
func TestModelAndStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 3))
			s := &scene{t: t, client: fake.NewClientset(), planner: planner{random, initialCarriers(initialTemplates())}}
			begin := s.carriers[mapSource].newest
			s.changeMap(&begin)
			s.start()
			defer s.stop()
			done, before := []string{}, ""
			for range 30 {
				done = append(done, s.step())
				is, may := s.describe()
				if all := s.forces(); !all[len(all)-1].frozen || is != before {
					require.Contains(t, may, is, "seed %d: %s", seed, strings.Join(done, ", "))
				}
				before = is
			}
		})
	}
}

// step makes the next edit, and after some the process restarts. It returns what
// was done.
func (s *scene) step() string {
	s.carriers = s.settled()
	next := s.next()
	for _, one := range next.changes {
		s.change(one)
	}
	if s.random.IntN(3) > 0 {
		return next.name
	}
	s.carriers = s.restarted(true)
	s.start()
	return next.name + ", restart"
}
