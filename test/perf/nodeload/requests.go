package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/kwok-dra/kwok-dra/test/cluster"
	"github.com/kwok-dra/kwok-dra/test/internal/nodeload"
)

// tally counts requests of one kind, by those who sent them.
type tally map[sender]int

func (t tally) total() (sum int) {
	for _, count := range t {
		sum += count
	}
	return sum
}

// sender is who sends requests, and how the API server queues them.
type sender struct{ agent, flowSchema, priorityLevel string }

func (s sender) String() string { return s.agent + ", " + s.flowSchema + ", " + s.priorityLevel }

// record is what kubelets and drivers have asked for while nodes started and while Pods lived, by component, verb and resource.
type record struct {
	start, pods map[string]tally
	// reads counts for each claim how often each component has read it.
	reads map[string]map[string]int
	// failures count requests that the API server has refused, by what they were and the status code.
	failures map[string]int
}

// isOfTime reports whether a request is sent now and then.
func isOfTime(what string) bool {
	return strings.Contains(what, " leases") || what == "kubelet patch nodes/status"
}

// readRecord reads the audit log, and the flow of each request from the API server's own log.
func readRecord(c *cluster.Cluster, podsFrom time.Time) (*record, error) {
	flows, err := readFlows(filepath.Join(c.Logs(), cluster.APIServer+".log"))
	if err != nil {
		return nil, err
	}
	events, err := c.Audited(func(event *cluster.AuditEvent) bool { return nodeload.RequestOf(event) != "" })
	if err != nil {
		return nil, err
	}
	r := &record{start: map[string]tally{}, pods: map[string]tally{}, reads: map[string]map[string]int{}, failures: map[string]int{}}
	for i := range events {
		event, what := &events[i], nodeload.RequestOf(&events[i])
		if code := event.ResponseStatus.Code; code >= http.StatusBadRequest {
			r.failures[fmt.Sprintf("%s %d", what, code)]++
		}
		all := r.start
		if event.RequestReceivedTimestamp.After(podsFrom) {
			if all = r.pods; isOfTime(what) {
				continue
			}
		}
		if all[what] == nil {
			all[what] = tally{}
		}
		from := flows[event.AuditID]
		from.agent, _, _ = strings.Cut(event.UserAgent, "/")
		all[what][from]++
		if component, isRead := strings.CutSuffix(what, " get resourceclaims"); isRead {
			claim := event.ObjectRef.Namespace + "/" + event.ObjectRef.Name
			if r.reads[claim] == nil {
				r.reads[claim] = map[string]int{}
			}
			r.reads[claim][component]++
		}
	}
	return r, nil
}

var (
	auditID       = regexp.MustCompile(`audit-ID="([^"]+)"`)
	flowSchema    = regexp.MustCompile(`apf_fs="([^"]+)"`)
	priorityLevel = regexp.MustCompile(`apf_pl="([^"]+)"`)
)

// readFlows reads the flow of each request from a log with a line for each request.
func readFlows(path string) (map[string]sender, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the log of the API server: %w", err)
	}
	defer func() { _ = log.Close() }()
	flows := map[string]sender{}
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		id, schema, level := auditID.FindSubmatch(lines.Bytes()), flowSchema.FindSubmatch(lines.Bytes()), priorityLevel.FindSubmatch(lines.Bytes())
		if id != nil && schema != nil && level != nil {
			flows[string(id[1])] = sender{flowSchema: string(schema[1]), priorityLevel: string(level[1])}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the log of the API server: %w", err)
	}
	return flows, nil
}
