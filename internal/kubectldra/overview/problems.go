package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/dractl/clusterdevices"
	"github.com/kwok-dra/kwok-dra/internal/dractl/output"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/natural"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra/selecting"
)

// rank is how important a kind of problem is: the lower, the more.
type rank int

const (
	failingPods rank = iota
	waitingPods
	goneDevices
	taintedInUse
	deadNodesInUse
	incompletePools
	taintedDevices
	deadNodes
)

// Problem is one thing that is wrong, wherever it is.
type Problem struct {
	Type string `json:"type"`
	// Problem says what is wrong.
	Problem string `json:"problem"`
	Devices int    `json:"devices,omitempty"`
	// Where are the nodes, or the pools that nodes share.
	Where []string `json:"where,omitempty"`
	// Pods have such devices, or wait.
	Pods []string `json:"pods,omitempty"`
	// Next is the command that says more.
	Next string `json:"next"`

	rank        rank
	where, pods map[string]bool
}

// problems collects what is wrong, the same of all nodes together.
type problems struct {
	cluster *selecting.Cluster
	all     []*Problem
}

// note adds devices to the problem of a rank and a text.
func (p *problems) note(of rank, text, where, next string, devices int, pods ...string) {
	at := slices.IndexFunc(p.all, func(known *Problem) bool { return known.rank == of && known.Problem == text })
	if at < 0 {
		at = len(p.all)
		p.all = append(p.all, &Problem{Type: "problem", Problem: text, Next: next, rank: of, where: map[string]bool{}, pods: map[string]bool{}})
	}
	known := p.all[at]
	known.Devices += devices
	if where != "" {
		known.where[where] = true
	}
	for _, pod := range pods {
		known.pods[pod] = true
	}
}

func (p *problems) addPool(item *inventory.Item, pool *inventory.Pool) {
	where := cmp.Or(item.Node, "pool "+pool.Name)
	if item.NotReady {
		of, pods, blocked := deadNodes, []string(nil), 0
		for i := range pool.Devices {
			_, own := clusterdevices.ClaimsAndPods(pool.Devices[i].Claims)
			pods = append(pods, own...)
			if pool.Devices[i].State == inventory.Blocked {
				blocked++
			}
		}
		if len(pods) > 0 {
			of = deadNodesInUse
		}
		p.note(of, "the node is not Ready", where, "kubectl describe node "+item.Node, blocked, pods...)
	}
	if !pool.Complete() {
		text := fmt.Sprintf("the pool of %s is incomplete, and the scheduler gives none of it: %d of %d slices", pool.Driver, pool.Slices, pool.SliceCount)
		p.note(incompletePools, text, where, "kubectl dra check", len(pool.Devices))
	}
	for i := range pool.Devices {
		p.addDevice(&pool.Devices[i], where)
	}
}

func (p *problems) addDevice(device *inventory.Device, where string) {
	_, pods := clusterdevices.ClaimsAndPods(device.Claims)
	reasons := clusterdevices.ListReasons(device.Claims, device.Taints)
	switch device.State {
	case inventory.Failing:
		next := "kubectl dra devices --state failing"
		if len(pods) > 0 {
			namespace, pod, _ := strings.Cut(pods[0], "/")
			next = "kubectl dra why pod/" + pod + " -n " + namespace
		}
		p.note(failingPods, "failing: "+output.OrNone(reasons...), where, next, 1, pods...)
	case inventory.Tainted:
		of := taintedDevices
		if len(device.Claims) > 0 {
			of = taintedInUse
		}
		p.note(of, "tainted: "+output.OrNone(reasons...), where, "kubectl dra devices --state tainted", 1, pods...)
	}
}

// addWaitingPods adds the Pods with claims that are not scheduled.
func (p *problems) addWaitingPods() {
	for _, pod := range p.cluster.Pods {
		if pod.Spec.NodeName == "" && pod.Status.Phase != "Succeeded" && pod.Status.Phase != "Failed" {
			name := pod.Namespace + "/" + pod.Name
			p.note(waitingPods, "Pods with claims are not scheduled", "", "kubectl dra why -A", 0, name)
		}
	}
}

// sorted returns the problems, the most important first: by rank, and then by how many Pods and devices have them.
func (p *problems) sorted() []Problem {
	all := make([]Problem, len(p.all))
	for i, problem := range p.all {
		problem.Where = slices.SortedFunc(maps.Keys(problem.where), natural.Compare)
		problem.Pods = slices.SortedFunc(maps.Keys(problem.pods), natural.Compare)
		all[i] = *problem
	}
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(len(b.Pods), len(a.Pods)), cmp.Compare(b.Devices, a.Devices), natural.Compare(a.Problem, b.Problem))
	})
	return all
}

func problemTable(sorted []Problem) *output.Rows {
	rows := &output.Rows{Title: "Problems, the most important first:", Columns: []output.Column{
		{Name: "problem"}, {Name: "devices", Spare: 1}, {Name: "where"}, {Name: "pods"}, {Name: "more", Spare: 2},
	}}
	const most = 2
	for i := range sorted {
		p := &sorted[i]
		devices := output.None
		if p.Devices > 0 {
			devices = fmt.Sprint(p.Devices)
		}
		rows.Add(p.Problem, devices, output.OrNone(cli.FirstFew(p.Where, most)), output.OrNone(cli.FirstFew(p.Pods, most)), p.Next)
	}
	return rows
}
