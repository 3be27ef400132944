package devicemetrics

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/config"
	"github.com/kwok-dra/kwok-dra/internal/controller/shard"
	"github.com/kwok-dra/kwok-dra/internal/extensions/containerview"
	"github.com/kwok-dra/kwok-dra/internal/extensions/inventory"
	"github.com/kwok-dra/kwok-dra/internal/testing/apitest"
	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

const (
	gpu0  = `gpu="0",UUID="GPU-0",pci_bus_id="00000000:5A:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n"`
	gpu1  = `gpu="1",UUID="GPU-1",pci_bus_id="00000000:5B:00.0",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",Hostname="n"`
	mig   = `gpu="1",UUID="GPU-1",device="nvidia1",modelName="NVIDIA H100 80GB HBM3",GPU_I_PROFILE="1g.10gb",GPU_I_ID="0",Hostname="n"`
	tpu   = `node="n",driver="other.example.com",pool="n",device="tpu"`
	nic   = `node="n",driver="other.example.com",pool="n",device="nic"`
	ofPod = `,container="c",namespace="default",pod="p"`
)

func usageOf(gpu, memory string) map[string]string {
	return map[string]string{v1alpha1.UsageGPUAnnotation: gpu, v1alpha1.UsageMemoryAnnotation: memory}
}

// TestNVIDIA has a Pod use a GPU, and another GPU idle.
func TestNVIDIA(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := running("p", usageOf("ramp(0, 100, 2m)", "25%"), "a")
		w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices), pod, allocated("a", "gpu.nvidia.com", "gpu-0", pod))
		want := map[string]string{
			`DCGM_FI_DEV_SM_CLOCK{` + gpu0 + ofPod + `}`:          "1980",
			`DCGM_FI_DEV_GPU_TEMP{` + gpu0 + ofPod + `}`:          "53",
			`DCGM_FI_DEV_POWER_USAGE{` + gpu0 + ofPod + `}`:       "385",
			`DCGM_FI_DEV_GPU_UTIL{` + gpu0 + ofPod + `}`:          "50",
			`DCGM_FI_DEV_MEM_COPY_UTIL{` + gpu0 + ofPod + `}`:     "25",
			`DCGM_FI_DEV_XID_ERRORS{` + gpu0 + ofPod + `}`:        "0",
			`DCGM_FI_DEV_FB_FREE{` + gpu0 + ofPod + `}`:           "61440",
			`DCGM_FI_DEV_FB_USED{` + gpu0 + ofPod + `}`:           "20480",
			`DCGM_FI_PROF_GR_ENGINE_ACTIVE{` + gpu0 + ofPod + `}`: "0.5",
			`DCGM_FI_DEV_SM_CLOCK{` + gpu1 + `}`:                  "210",
			`DCGM_FI_DEV_GPU_TEMP{` + gpu1 + `}`:                  "30",
			`DCGM_FI_DEV_POWER_USAGE{` + gpu1 + `}`:               "70",
			`DCGM_FI_DEV_GPU_UTIL{` + gpu1 + `}`:                  "0",
			`DCGM_FI_DEV_MEM_COPY_UTIL{` + gpu1 + `}`:             "0",
			`DCGM_FI_DEV_XID_ERRORS{` + gpu1 + `}`:                "0",
			`DCGM_FI_DEV_FB_FREE{` + gpu1 + `}`:                   "81920",
			`DCGM_FI_DEV_FB_USED{` + gpu1 + `}`:                   "0",
			`DCGM_FI_PROF_GR_ENGINE_ACTIVE{` + gpu1 + `}`:         "0",
		}
		require.Equal(t, want, w.scrape("/metrics/nodes/n/devices"))
		want[Omitted.Name] = "0"
		require.Equal(t, want, w.scrape("/metrics/devices"))
		w.now = w.now.Add(30 * time.Second)
		require.Equal(t, "75", w.scrape("/metrics/devices")[`DCGM_FI_DEV_GPU_UTIL{`+gpu0+ofPod+`}`])
	})
}

func TestPartition(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := running("p", usageOf("40", "5Gi"), "a")
		w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices), pod, allocated("a", "gpu.nvidia.com", "gpu-1-mig-1g10gb-19-0", pod))
		samples := w.scrape("/metrics/nodes/n/devices")
		require.Equal(t, "0.4", samples[`DCGM_FI_PROF_GR_ENGINE_ACTIVE{`+mig+ofPod+`}`])
		require.Equal(t, "5120", samples[`DCGM_FI_DEV_FB_FREE{`+mig+ofPod+`}`])
		require.NotContains(t, samples, `DCGM_FI_DEV_GPU_UTIL{`+mig+ofPod+`}`, "DCGM does not know it of partitions")
		require.Contains(t, samples, `DCGM_FI_DEV_GPU_UTIL{`+gpu1+`}`)
	})
}

func TestOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := running("p", usageOf("75", "4Gi"), "a")
		w := newWorld(t, claimstest.NewNode("n"), publish("other.example.com", otherDevices), pod, allocated("a", "other.example.com", "tpu", pod))
		require.Equal(t, map[string]string{
			`kwok_dra_device_utilization_ratio{` + tpu + ofPod + `}`: "0.75",
			`kwok_dra_device_memory_used_bytes{` + tpu + ofPod + `}`: "4.294967296e+09",
			`kwok_dra_device_memory_size_bytes{` + tpu + ofPod + `}`: "1.7179869184e+10",
			`kwok_dra_device_healthy{` + tpu + ofPod + `}`:           "1",
			`kwok_dra_device_utilization_ratio{` + nic + `}`:         "0",
			`kwok_dra_device_healthy{` + nic + `}`:                   "1",
		}, w.scrape("/metrics/nodes/n/devices"))
	})
}

// TestShared has two Pods share a device: each shows its own part, and what is left is of both.
func TestShared(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p, q := running("p", usageOf("10", "20Gi"), "a"), running("q", usageOf("30", "30Gi"), "a")
		w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices), p, q, allocated("a", "gpu.nvidia.com", "gpu-0", p, q))
		samples := w.scrape("/metrics/devices")
		ofQ := strings.Replace(ofPod, `"p"`, `"q"`, 1)
		for series, want := range map[string]string{
			`DCGM_FI_DEV_GPU_UTIL{` + gpu0 + ofPod + `}`: "10", `DCGM_FI_DEV_GPU_UTIL{` + gpu0 + ofQ + `}`: "30",
			`DCGM_FI_DEV_FB_USED{` + gpu0 + ofPod + `}`: "20480", `DCGM_FI_DEV_FB_USED{` + gpu0 + ofQ + `}`: "30720",
			`DCGM_FI_DEV_FB_FREE{` + gpu0 + ofPod + `}`: "30720", `DCGM_FI_DEV_FB_FREE{` + gpu0 + ofQ + `}`: "30720",
		} {
			require.Equal(t, want, samples[series], series)
		}
	})
}

// TestLife follows a device from a Pod that waits to one that has ended.
func TestLife(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := running("p", usageOf("75", "50%"), "a")
		pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
		w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices), pod, allocated("a", "gpu.nvidia.com", "gpu-0", pod))
		series := `DCGM_FI_DEV_GPU_UTIL{` + gpu0 + ofPod + `}`
		require.Equal(t, "0", w.scrape("/metrics/devices")[series], "it does not run yet")
		apitest.Edit(w.Server, "default", "p", func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.StartTime = &metav1.Time{Time: claimstest.Noon.Add(time.Minute)} // by a clock that is ahead
		})
		require.Equal(t, "75", w.scrape("/metrics/devices")[series])
		apitest.Edit(w.Server, "default", "p", func(pod *corev1.Pod) { pod.Annotations[v1alpha1.UsageGPUAnnotation] = "80" })
		require.Equal(t, "80", w.scrape("/metrics/devices")[series], "annotations may change")
		apitest.Edit(w.Server, "default", "p", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded })
		samples := w.scrape("/metrics/devices")
		require.NotContains(t, samples, series)
		require.Equal(t, "0", samples[`DCGM_FI_DEV_GPU_UTIL{`+gpu0+`}`])
	})
}

// TestObservers do not use what they observe.
func TestObservers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		pod := running("p", usageOf("75", "50%"), "a")
		claim := allocated("a", "gpu.nvidia.com", "gpu-0", pod)
		claim.Status.Allocation.Devices.Results[0].AdminAccess = new(true)
		w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices), pod, claim)
		require.Contains(t, w.scrape("/metrics/devices"), `DCGM_FI_DEV_GPU_UTIL{`+gpu0+`}`)
	})
}

func TestXID(t *testing.T) {
	for name, test := range map[string]struct{ taint, xid, healthy string }{
		"healthy":             {"", "0", "1"},
		"named":               {"gpu.nvidia.com/xid=43:None", "43", "0"},
		"any":                 {"example.com/broken=:NoSchedule", "79", "0"},
		"no effect":           {"example.com/noted=:None", "0", "1"},
		"named with nonsense": {"gpu.nvidia.com/xid=x:NoExecute", "79", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, claimstest.NewNode("n"),
					publish("gpu.nvidia.com", nvidiaDevices, "gpu-1="+test.taint), publish("other.example.com", otherDevices, "nic="+test.taint))
				samples := w.scrape("/metrics/devices")
				require.Equal(t, test.xid, samples[`DCGM_FI_DEV_XID_ERRORS{`+gpu1+`}`])
				require.Equal(t, "0", samples[`DCGM_FI_DEV_XID_ERRORS{`+gpu0+`}`])
				require.Equal(t, test.healthy, samples[`kwok_dra_device_healthy{`+nic+`}`])
			})
		})
	}
}

// TestLimit shows the busy devices first, and counts what is left out.
// TestTaintRules: a device that a DeviceTaintRule taints is broken, like one that its slice taints.
func TestTaintRules(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices), publish("other.example.com", otherDevices))
		for _, test := range []struct {
			rules        []inventory.TaintRule
			xid, healthy string
		}{
			{nil, "0", "1"},
			{[]inventory.TaintRule{{Selector: &resourcev1.DeviceTaintSelector{}, Taint: inventory.Taint{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute}}}, "79", "0"},
			{[]inventory.TaintRule{{Taint: inventory.Taint{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute}}}, "0", "1"},
		} {
			w.rules = test.rules
			for _, path := range []string{"/metrics/devices", "/metrics/nodes/n/devices"} {
				samples := w.scrape(path)
				require.Equal(t, test.xid, samples[`DCGM_FI_DEV_XID_ERRORS{`+gpu1+`}`])
				require.Equal(t, test.healthy, samples[`kwok_dra_device_healthy{`+nic+`}`])
			}
		}
	})
}

func TestLimit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, fleet(3, 2)...)
		for limit, want := range map[int]struct {
			busy, all int
			omitted   string
		}{1: {1, 1, "23"}, 2: {2, 2, "22"}, 4: {2, 4, "20"}, 12: {2, 12, "12"}, 100: {2, 24, "0"}} {
			w.Max = limit
			samples := w.scrape("/metrics/devices")
			busy, all := 0, 0
			for series := range samples {
				if strings.HasPrefix(series, "kwok_dra_device_healthy{") || strings.HasPrefix(series, "DCGM_FI_DEV_GPU_UTIL{") {
					all++
					if strings.Contains(series, "pod=") {
						busy++
					}
				}
			}
			require.Equal(t, want.busy, busy, limit)
			require.Equal(t, want.all, all, limit)
			require.Equal(t, want.omitted, samples[Omitted.Name], limit)
		}
		require.Len(t, w.scrape("/metrics/nodes/node-2/devices"), 8*9, "those of one node are all there")
	})
}

// TestNothingIsKept where nobody scrapes, or only single nodes, or of nodes that have gone.
func TestNothingIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, fleet(2, 1)...)
		require.Empty(t, w.nodes)
		w.scrape("/metrics/nodes/node-0/devices")
		require.Empty(t, w.nodes)
		w.scrape("/metrics/devices")
		require.Len(t, w.nodes, 2)
		before := w.nodes["node-0"]
		w.scrape("/metrics/devices")
		require.Same(t, before, w.nodes["node-0"], "nothing has changed")
		w.Remove(claimstest.NewNode("node-1"))
		w.scrape("/metrics/devices")
		require.Len(t, w.nodes, 1)
	})
}

// TestIncompleteDevicesAreNotKept: the scrape after drivers become known has all devices, though no object has changed.
func TestIncompleteDevicesAreNotKept(t *testing.T) {
	for name, before := range map[string]containerview.Drivers{"no driver is known": nil, "no device is known": &unknowing{}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, claimstest.NewNode("n"), publish("gpu.nvidia.com", nvidiaDevices))
				drivers := w.Drivers
				w.Drivers = func(*config.Set, *corev1.Node) containerview.Drivers { return before }
				require.NotContains(t, w.scrape("/metrics/devices"), `DCGM_FI_DEV_GPU_UTIL{`+gpu0+`}`)
				w.Drivers = drivers
				require.Contains(t, w.scrape("/metrics/devices"), `DCGM_FI_DEV_GPU_UTIL{`+gpu0+`}`)
				kept := w.nodes["n"]
				w.scrape("/metrics/devices")
				require.Same(t, kept, w.nodes["n"], "nothing has changed since")
			})
		})
	}
}

// unknowing are drivers that know no device.
type unknowing struct{ containerview.Drivers }

// Device implements containerview.Drivers.
func (*unknowing) Device(*resourcev1.DeviceRequestAllocationResult) *resourcev1.Device { return nil }

func TestNewestGeneration(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		older := publish("other.example.com", []string{"gone"})
		older.Name, older.Spec.Pool.Generation = "older", 0
		w := newWorld(t, claimstest.NewNode("n"), older, publish("other.example.com", otherDevices))
		require.Len(t, w.scrape("/metrics/nodes/n/devices"), 6)
	})
}

// TestOtherNodes are not served: missing ones, real ones, and those of another replica.
func TestOtherNodes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		genuine := claimstest.NewNode("real")
		genuine.Annotations = nil
		w := newWorld(t, claimstest.NewNode("n"), genuine, publish("other.example.com", otherDevices))
		for _, name := range []string{"missing", "real"} {
			code, body := w.get("/metrics/nodes/" + name + "/devices")
			require.Equal(t, http.StatusNotFound, code)
			require.Equal(t, "node "+name+" is none that this kwok-dra acts for\n", body)
		}
		w.Owner = shard.New(shard.Options{Mode: shard.Leader, Client: w.Server, Host: "h", Namespace: "default", Name: "l"})
		code, _ := w.get("/metrics/nodes/n/devices")
		require.Equal(t, http.StatusNotFound, code, "it does not lead")
		require.Equal(t, map[string]string{Omitted.Name: "0"}, w.scrape("/metrics/devices"))
	})
}

func TestCompressed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, claimstest.NewNode("n"), publish("other.example.com", otherDevices))
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics/devices", nil)
		request.Header.Set("Accept-Encoding", "gzip")
		recorder := httptest.NewRecorder()
		w.Handler().ServeHTTP(recorder, request)
		require.Equal(t, "gzip", recorder.Header().Get("Content-Encoding"))
		reader, err := gzip.NewReader(recorder.Body)
		require.NoError(t, err)
		body, err := io.ReadAll(reader)
		require.NoError(t, err)
		_, plain := w.get("/metrics/devices")
		require.Equal(t, plain, string(body))
	})
}

func TestLabels(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{a="1\"\\\n",c="3"}`, formatLabels([]label{{"a", "1\"\\\n"}, {"b", ""}, {"c", "3"}}))
}

// BenchmarkScrape scrapes a fleet of 10,000 nodes with 80,000 devices, of which 8,000 are allocated,
// without and with changes of one node in ten between two scrapes.
func BenchmarkScrape(b *testing.B) {
	w := newWorld(b, fleet(10_000, 8_000)...)
	scrape := func() int64 {
		recorder := &counter{ResponseWriter: httptest.NewRecorder()}
		w.Handler().ServeHTTP(recorder, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics/devices", nil))
		return recorder.bytes
	}
	scrape()
	b.Run("Same", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.ReportMetric(float64(scrape())/(1<<20), "MiB/scrape")
		}
	})
	b.Run("First", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.nodes = map[string]*nodeDevices{}
			scrape()
		}
	})
}

// counter counts what is written.
type counter struct {
	http.ResponseWriter
	bytes int64
}

func (c *counter) Write(data []byte) (int, error) {
	c.bytes += int64(len(data))
	return len(data), nil
}
