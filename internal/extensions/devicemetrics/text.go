package devicemetrics

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

// label is a label of a metric.
type label struct{ name, value string }

var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// formatLabels formats labels. It leaves out empty ones, which mean the same to Prometheus.
func formatLabels(labels []label) string {
	var text strings.Builder
	for _, l := range labels {
		if l.value != "" {
			text.WriteString(map[bool]string{true: "{", false: ","}[text.Len() == 0])
			text.WriteString(l.name + `="` + escaper.Replace(l.value) + `"`)
		}
	}
	return text.String() + "}"
}

// exposition is what a scrape gets.
type exposition struct {
	devices [][]device
	// omitted is nil if nothing is ever left out.
	omitted *int
	now     time.Time
}

// serveExposition answers a scrape, compressed if the client accepts that.
func serveExposition(w http.ResponseWriter, r *http.Request, e *exposition) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	w.Header().Set("Vary", "Accept-Encoding")
	var to io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // fails for other levels only
		defer func() { _ = compressed.Close() }()
		to = compressed
	}
	if err := e.writeText(to); err != nil {
		klog.FromContext(r.Context()).V(2).Info("Client closed the connection while it scraped metrics of devices", "err", err)
	}
}

// writeText writes the text format of Prometheus, family by family.
func (e *exposition) writeText(to io.Writer) error {
	var readings []reading
	for _, part := range e.devices {
		for i := range part {
			readings = part[i].appendReadings(e.now, readings)
		}
	}
	buffered := bufio.NewWriterSize(to, 64<<10)
	for _, f := range Families() {
		f.writeFamily(buffered, readings)
	}
	if e.omitted != nil {
		Omitted.writeHead(buffered)
		writeSample(buffered, Omitted.Name, "", float64(*e.omitted))
	}
	return buffered.Flush()
}

// writeFamily writes a family, if any device has it.
func (f *Family) writeFamily(to *bufio.Writer, readings []reading) {
	begun := false
	for i := range readings {
		if !f.of(readings[i].device) {
			continue
		}
		if !begun {
			f.writeHead(to)
			begun = true
		}
		writeSample(to, f.Name, readings[i].labels, f.value(&readings[i]))
	}
}

// writeHead writes the comments before a metric. The writer keeps the first error, which Flush returns.
func (f *Family) writeHead(to *bufio.Writer) {
	_, _ = to.WriteString("# HELP " + f.Name + " " + f.Help + "\n# TYPE " + f.Name + " gauge\n")
}

func writeSample(to *bufio.Writer, name, labels string, value float64) {
	_, _ = to.WriteString(name)
	_, _ = to.WriteString(labels)
	_ = to.WriteByte(' ')
	_, _ = to.Write(strconv.AppendFloat(to.AvailableBuffer(), value, 'g', -1, 64))
	_ = to.WriteByte('\n')
}
