package record

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

const (
	prepareCall = "NodePrepareResources"
	// kubeletTime is how long a kubelet takes before it calls the driver, which the Stage
	// pod-prepare stands for too.
	kubeletTime = 300 * time.Millisecond
	// metricsLimit bounds the wait for an address that does not answer.
	metricsLimit = 10 * time.Second
)

// histogram is how long a driver took to prepare claims. Its buckets are cumulative.
type histogram []bucket

type bucket struct{ bound, count float64 }

// callBucket finds a bucket of the metric of calls, with its labels and its count, and label a label.
var (
	callBucket = regexp.MustCompile(`^kwok_dra_plugin_call_duration_seconds_bucket\{(.*)\} (\S+)`)
	label      = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// readLatencies reads the histograms of the calls that prepare claims, by driver.
func readLatencies(ctx context.Context, url string) (map[string]histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("parse --metrics: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read --metrics: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read --metrics %s: %s: give the address of kwok-dra's /metrics", url, answer.Status)
	}
	all, err := parseLatencies(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read --metrics %s: %w", url, err)
	}
	return all, nil
}

// parseLatencies returns the histograms in the text format of Prometheus, by driver.
func parseLatencies(text io.Reader) (map[string]histogram, error) {
	all := map[string]histogram{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		found := callBucket.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(found[1], -1) {
			labels[pair[1]] = pair[2]
		}
		bound, err := strconv.ParseFloat(labels["le"], 64)
		if err != nil {
			return nil, fmt.Errorf("bucket %s: %w", found[1], err)
		}
		count, err := strconv.ParseFloat(found[2], 64)
		if err != nil {
			return nil, fmt.Errorf("bucket %s: %w", found[1], err)
		}
		if labels["method"] == prepareCall && labels["code"] == "OK" {
			all[labels["driver"]] = append(all[labels["driver"]], bucket{bound, count})
		}
	}
	return all, lines.Err()
}

// callCount is how many calls there were.
func (h histogram) callCount() float64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].count
}

// medianLatency is the p50, as histogram_quantile of Prometheus has it. There is at least one call.
func (h histogram) medianLatency() time.Duration {
	rank := h.callCount() / 2
	before := bucket{}
	for _, b := range h {
		if b.count >= rank && !math.IsInf(b.bound, 1) {
			before.bound += (b.bound - before.bound) * (rank - before.count) / (b.count - before.count)
			break
		}
		if !math.IsInf(b.bound, 1) {
			before = b
		}
	}
	return time.Duration(before.bound * float64(time.Second)).Round(time.Millisecond)
}
