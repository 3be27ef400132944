package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/sidecar"
)

// disruption is something that befalls the cluster or the sidecar while the
// proxy disturbs single requests.
type disruption struct {
	name  string
	after time.Duration
	do    func(ctx context.Context, w *world) error
}

// newDisruptions chooses what happens in a seed. What takes servers away is rare,
// since each takes seconds.
func newDisruptions(random *rand.Rand, mode string, length time.Duration) []disruption {
	var all []disruption
	add := func(chance int, name string, do func(ctx context.Context, w *world) error) {
		if random.IntN(chance) == 0 {
			all = append(all, disruption{name, time.Duration(random.Int64N(int64(length / 2))), do})
		}
	}
	number := random.IntN(mostReplicas)
	kill := func(_ context.Context, w *world) error { return w.replace(number, (*sidecar.Process).Kill) }
	pause := time.Duration(random.Int64N(int64(time.Second)))
	add(2, "kill", kill)
	add(4, "kill", kill)
	add(8, "apiserver", func(ctx context.Context, w *world) error { return w.restart(ctx, pause, cluster.APIServer) })
	add(12, "etcd", func(ctx context.Context, w *world) error { return w.restart(ctx, pause, cluster.Etcd) })
	add(10, "compaction", func(ctx context.Context, w *world) error {
		// Where a server starts anew, it knows no version that is older than itself.
		return errors.Join(w.etcd.compact(ctx), w.restart(ctx, 0, cluster.APIServer))
	})
	add(4, "controllers", func(ctx context.Context, w *world) error { return w.restart(ctx, 2*pause, cluster.ControllerManager) })
	add(6, "freeze", func(ctx context.Context, w *world) error { return w.freeze(ctx, number, 2*pause) })
	add(6, "partition", func(ctx context.Context, w *world) error { return w.partition(ctx, number, 2*pause) })
	if mode != modeNone {
		all = append(all, handovers(random, number, length)...)
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// failover is how long a leader has to be silent for another one to lead.
const failover = 18 * time.Second

// handovers have others lead. One that takes the lead by force costs no time.
func handovers(random *rand.Rand, number int, length time.Duration) []disruption {
	var all []disruption
	for range random.IntN(3) {
		after := time.Duration(random.Int64N(int64(length / 2)))
		all = append(all, pick(random,
			disruption{"usurp", after, func(ctx context.Context, w *world) error { return w.usurp(ctx) }},
			disruption{"stop", after, func(_ context.Context, w *world) error { return w.replace(number, (*sidecar.Process).Stop) }},
		))
	}
	switch random.IntN(12) {
	case 0:
		all = append(all, disruption{"freeze", 0, func(ctx context.Context, w *world) error { return w.freeze(ctx, number, failover) }})
	case 1:
		all = append(all, disruption{"partition", 0, func(ctx context.Context, w *world) error { return w.partition(ctx, number, failover) }})
	}
	return all
}

// freeze has a sidecar stand still for a while, and then go on as if nothing had
// been.
func (rs *replicas) freeze(ctx context.Context, number int, length time.Duration) error {
	running := rs.running()
	pid := running[number%len(running)].PID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("freeze the sidecar: %w", err)
	}
	sleep(ctx, length)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		return fmt.Errorf("thaw the sidecar: %w", err)
	}
	return nil
}

// partition takes the network from a sidecar for a while.
func (rs *replicas) partition(ctx context.Context, number int, length time.Duration) error {
	rs.all[number%len(rs.running())].proxy.partition(ctx, length)
	return nil
}

// restart stops a component, and starts it after a while. It ends when the API server
// serves again: on a busy machine that is long after it listens.
func (w *world) restart(ctx context.Context, pause time.Duration, component string) error {
	if err := w.cluster.StopComponent(ctx, component); err != nil {
		return err
	}
	sleep(ctx, pause)
	if err := w.cluster.StartComponent(ctx, component); err != nil {
		return err
	}
	return persist(ctx, w.ready)
}

// revive starts what has ended, as a kubelet does: kube-controller-manager ends where it
// finds no API server as it starts.
func (w *world) revive(ctx context.Context) error {
	var errs []error
	for _, component := range others {
		errs = append(errs, w.cluster.StartComponent(ctx, component))
	}
	return errors.Join(errs...)
}

// others are the components that ask the API server.
var others = []string{cluster.Scheduler, cluster.ControllerManager, cluster.Kwok}

// etcd is the address of one.
type etcd string

// compact has etcd forget all that is past.
func (e etcd) compact(ctx context.Context) error {
	revision, err := e.revision(ctx)
	if err != nil {
		return err
	}
	var answer struct{}
	return e.ask(ctx, "compaction", map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}, &answer)
}

// revision is the newest.
func (e etcd) revision(ctx context.Context) (int64, error) {
	var found struct{ Header struct{ Revision string } }
	if err := e.ask(ctx, "range", map[string]any{"key": []byte("/"), "count_only": true}, &found); err != nil {
		return 0, err
	}
	return strconv.ParseInt(found.Header.Revision, 10, 64)
}

func (e etcd) ask(ctx context.Context, method string, question, reply any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encode question to etcd: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, string(e)+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", method, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", method, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("ask etcd for %s: status %s", method, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(reply)
}

var etcdServers = regexp.MustCompile(`--etcd-servers=(http://[^\s,"']+)`)

// etcdAddress finds where the API server has its etcd.
func etcdAddress(c *cluster.Cluster) (etcd, error) {
	path := filepath.Join(filepath.Dir(c.Kubeconfig()), "kwok.yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("find etcd: %w", err)
	}
	match := etcdServers.FindSubmatch(content)
	if match == nil {
		return "", fmt.Errorf("find etcd: %s does not have --etcd-servers", path)
	}
	return etcd(match[1]), nil
}
