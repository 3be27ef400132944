package devices

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/kwok-dra/kwok-dra/internal/observe/lifecycle"
	"github.com/kwok-dra/kwok-dra/pkg/api/validation"
)

// annotated is node n with an annotation of device taints.
func annotated(text string) *corev1.Node {
	node := newNode("n", nil)
	node.Annotations = map[string]string{"dra.kwok.x-k8s.io/device-taints": text}
	return node
}

func taint(key, value string, effect resourcev1.DeviceTaintEffect) resourcev1.DeviceTaint {
	return resourcev1.DeviceTaint{Key: key, Value: value, Effect: effect}
}

func parseTaints(text string) (Taints, error) {
	return TaintsOf(lifecycle.NewObject(annotated(text)))
}

func TestParseTaints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Taints{
		"":                                       nil,
		" \n":                                    nil,
		"gpu-3:xid:NoExecute":                    {{"", "gpu-3", taint("xid", "", "NoExecute")}},
		"gpu-3:xid=:None":                        {{"", "gpu-3", taint("xid", "", "None")}},
		"gpu-3:gpu.nvidia.com/xid=79:NoSchedule": {{"", "gpu-3", taint("gpu.nvidia.com/xid", "79", "NoSchedule")}},
		"gpu.nvidia.com/gpu-3:gpu.nvidia.com/xid=79:NoSchedule": {{"gpu.nvidia.com", "gpu-3", taint("gpu.nvidia.com/xid", "79", "NoSchedule")}},
		"a:k:None, b:k:None,\n  a:k:NoExecute,d/a:k:None": {
			{"", "a", taint("k", "", "None")}, {"", "b", taint("k", "", "None")}, {"", "a", taint("k", "", "NoExecute")}, {"d", "a", taint("k", "", "None")},
		},
	} {
		got, err := parseTaints(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

// TestParseTaintsIsBrief has an annotation as large as may be, of many mistakes
// and of one.
func TestParseTaintsIsBrief(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("::,", 80<<10), strings.Repeat("💥", 60<<10), "a:" + strings.Repeat("k", 240<<10) + ":None"} {
		_, err := parseTaints(text)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 4<<10)
	}
	_, err := parseTaints("a,b,c,d,e,f,g")
	require.ErrorContains(t, err, "; and more")
}

func TestParseTaintsRefuses(t *testing.T) {
	t.Parallel()
	const form = "must be [driver/]device:key[=value]:effect, for example gpu-0:example.com/xid=79:NoExecute"
	for text, want := range map[string]string{
		",":                              `entry "": ` + form,
		"a:k:None,":                      `entry "": ` + form,
		"gpu-3":                          `entry "gpu-3": ` + form,
		"gpu-3:xid":                      `entry "gpu-3:xid": ` + form,
		":xid:None":                      `entry ":xid:None": ` + form,
		"/gpu-3:xid:None":                `entry "/gpu-3:xid:None": ` + form,
		"d/:xid:None":                    `entry "d/:xid:None": ` + form,
		"a:k:NoSchedule-":                `entry "a:k:NoSchedule-": effect: Unsupported value: "NoSchedule-": supported values: "NoSchedule", "NoExecute", "None"`,
		"a:k:PreferNoSchedule":           `supported values: "NoSchedule", "NoExecute", "None"`,
		"a:k:":                           `effect: Unsupported value: ""`,
		"a::None":                        `key: Invalid value: "": must be a name`,
		"a:b c:None":                     `key: Invalid value: "b c": must be a name of at most 63 letters`,
		"a:b:c:None":                     `key: Invalid value: "b:c": must be a name of at most 63 letters`,
		"a:b/c/d:None":                   `key: Invalid value: "b/c/d": must be a name of at most 63 letters`,
		"a:k=b c:None":                   `value: Invalid value: "b c": must be letters, digits and inner`,
		"a:k=b=c:None":                   `value: Invalid value: "b=c": must be letters, digits and inner`,
		"a:k=1:None,b:k:None,a:k=2:None": `entry "a:k=2:None": has the device, key and effect of another entry`,
		"d/a:k:None,d/a:k:None":          `entry "d/a:k:None": has the device, key and effect of another entry`,
		"a,b":                            `entry "a": ` + form + `; entry "b": ` + form,
	} {
		_, err := parseTaints(text)
		require.ErrorContains(t, err, want, text)
		require.True(t, strings.HasPrefix(err.Error(), "annotation dra.kwok.x-k8s.io/device-taints: entry "), err)
		require.NotContains(t, err.Error(), "\n")
	}
}

// FuzzTaints: whatever an annotation says, there is no panic; what is accepted is
// what the API server accepts, and reads the same when it is written again.
func FuzzTaints(f *testing.F) {
	for _, seed := range []string{
		"", "a:k:None", "d/a:x.y/k=v:NoExecute, b:k:NoSchedule", ":::", "a/b/c:k=:None", "=:=,:", "a: k:None", "\x00:k:None", "ä:k:None", "a:k:None,a:k:None",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		taints, err := parseTaints(text)
		if err != nil {
			return
		}
		var entries []string
		for _, entry := range taints {
			require.Empty(t, validation.ValidateTaint(&entry.taint, nil))
			require.NotEmpty(t, entry.device)
			entries = append(entries, entry.String())
		}
		again, err := parseTaints(strings.Join(entries, ","))
		require.NoError(t, err)
		require.Equal(t, taints, again)
		device := resourcev1.Device{Name: "a"}
		for _, pools := range [][]Pool{nil, {{Driver: "d", Name: "n"}}, {{Driver: "c", Name: "n"}, {Driver: "d", Name: "n", Devices: []resourcev1.Device{device}}}} {
			if err := taints.Missing(pools, nil); err != nil {
				require.ErrorContains(t, err, "the node has no such device")
			}
		}
	})
}

// shown lists the devices with the taints that they have.
func shown(pools []Pool) []string {
	var all []string
	for _, pool := range pools {
		for _, device := range pool.Devices {
			text := pool.Driver + "/" + pool.Name + "/" + device.Name
			for _, taint := range device.Taints {
				text += " " + strings.TrimPrefix(nodeTaint{device: device.Name, taint: taint}.String(), device.Name+":")
			}
			all = append(all, text)
		}
	}
	return all
}

func TestPoolsAreTainted(t *testing.T) {
	t.Parallel()
	const plain, tainted = "driver: d\ndevices: [{name: a, count: 2}]", "driver: d\ndevices: [{name: a, count: 2, taints: [{key: k, value: v, effect: NoSchedule}]}]"
	for name, test := range map[string]struct {
		specs []string
		text  string
		want  []string
	}{
		"none":                              {[]string{plain}, "", []string{"d/n/a-0", "d/n/a-1"}},
		"one":                               {[]string{plain}, "a-1:k=v:NoExecute", []string{"d/n/a-0", "d/n/a-1 k=v:NoExecute"}},
		"of the driver":                     {[]string{plain}, "d/a-0:k:None", []string{"d/n/a-0 k:None", "d/n/a-1"}},
		"of another driver":                 {[]string{plain}, "e/a-0:k:None", []string{"d/n/a-0", "d/n/a-1"}},
		"in every pool":                     {[]string{plain, plain + "\npoolName: q-{{ .Node.metadata.name }}"}, "a-0:k:None", []string{"d/n/a-0 k:None", "d/n/a-1", "d/q-n/a-0 k:None", "d/q-n/a-1"}},
		"in one pool only":                  {[]string{plain, "driver: d\npoolName: q-{{ .Node.metadata.name }}\ndevices: [{name: b}]"}, "b:k:None", []string{"d/n/a-0", "d/n/a-1", "d/q-n/b k:None"}},
		"two on a device":                   {[]string{plain}, "a-0:k:None,a-0:l:None", []string{"d/n/a-0 k:None l:None", "d/n/a-1"}},
		"beside another key":                {[]string{tainted}, "a-0:l:NoSchedule", []string{"d/n/a-0 k=v:NoSchedule l:NoSchedule", "d/n/a-1 k=v:NoSchedule"}},
		"beside another effect":             {[]string{tainted}, "a-0:k=v:NoExecute", []string{"d/n/a-0 k=v:NoSchedule k=v:NoExecute", "d/n/a-1 k=v:NoSchedule"}},
		"in place of the template's":        {[]string{tainted}, "a-0:k=w:NoSchedule", []string{"d/n/a-0 k=w:NoSchedule", "d/n/a-1 k=v:NoSchedule"}},
		"the later in place of the earlier": {[]string{plain}, "a-0:k=1:None,d/a-0:k=2:None", []string{"d/n/a-0 k=2:None", "d/n/a-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var templates []*Template
			for i, spec := range test.specs {
				templates = append(templates, compile(t, fmt.Sprint("t", i), spec))
			}
			before := shown(render(t, newNode("n", nil), templates...))
			require.Equal(t, test.want, shown(render(t, annotated(test.text), templates...)))
			require.Equal(t, before, shown(render(t, newNode("n", nil), templates...)), "the template is as it was")
		})
	}
}

// TestTaintsAreSplit: one annotated taint halves what fits into a slice.
func TestTaintsAreSplit(t *testing.T) {
	t.Parallel()
	template := compile(t, "t", "driver: d\ndevices: [{name: a, count: 128}]")
	require.Len(t, divide(t, &render(t, newNode("n", nil), template)[0], CountersApart), 1)
	require.Len(t, divide(t, &render(t, annotated("a-100:k:None"), template)[0], CountersApart), 2)
}

func TestTaintsOfADeviceAreLimited(t *testing.T) {
	t.Parallel()
	template := compile(t, "t", "driver: d\ndevices: [{name: a, taints: [{key: own, effect: NoSchedule}]}]")
	var entries []string
	for i := range 15 {
		entries = append(entries, fmt.Sprintf("a:k%d:None", i))
	}
	require.Len(t, render(t, annotated(strings.Join(entries, ",")), template)[0].Devices[0].Taints, 16)
	require.Len(t, render(t, annotated(strings.Join(entries, ",")+",a:own=v:NoSchedule"), template)[0].Devices[0].Taints, 16, "one takes another's place")
	_, err := Pools([]*Template{template}, lifecycle.NewObject(annotated(strings.Join(entries, ",")+",a:more:None")))
	require.EqualError(t, err, "annotation dra.kwok.x-k8s.io/device-taints: device a of driver d has more than 16 taints, those of its template counted")
}

func TestPoolsRefuseABadAnnotation(t *testing.T) {
	t.Parallel()
	_, err := Pools([]*Template{compile(t, "t", namedDevices("a"))}, lifecycle.NewObject(annotated("a")))
	require.ErrorContains(t, err, `annotation dra.kwok.x-k8s.io/device-taints: entry "a": must be`)
}

func TestMissing(t *testing.T) {
	t.Parallel()
	pools := render(t, newNode("n", nil), compile(t, "a", namedDevices("x", "w")), compile(t, "b", namedDevices("z")+"poolName: q-{{ .Node.metadata.name }}"))
	const prefix, hint = "annotation dra.kwok.x-k8s.io/device-taints: ", "the node has no such device; it has, for example, d/x"
	for name, test := range map[string]struct {
		text  string
		pools []Pool
		held  string
		want  string
	}{
		"no taints":             {"", nil, "", ""},
		"all there":             {"x:k:None,w:k:None,d/z:k:None", pools, "", ""},
		"not there":             {"y:k:None,x:k:None,d/v:k=1:None", pools, "", prefix + `entry "y:k:None": ` + hint + `; entry "d/v:k=1:None": ` + hint},
		"of another driver":     {"e/x:k:None", pools, "", prefix + `entry "e/x:k:None": ` + hint},
		"no devices":            {"x:k:None", nil, "", prefix + `entry "x:k:None": the node has no such device; it has none`},
		"none in the pool":      {"x:k:None", []Pool{{Driver: "d", Name: "n"}}, "", prefix + `entry "x:k:None": the node has no such device; it has none`},
		"none in the first":     {"y:k:None", append([]Pool{{Driver: "c", Name: "n"}}, pools...), "", prefix + `entry "y:k:None": ` + hint},
		"may be held":           {"y:k:None", pools, "e", ""},
		"is of the held driver": {"e/y:k:None", pools, "e", ""},
		"is not of the held":    {"d/y:k:None", pools, "e", prefix + `entry "d/y:k:None": ` + hint},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			taints, err := TaintsOf(lifecycle.NewObject(annotated(test.text)))
			require.NoError(t, err)
			held := map[string]error{}
			if test.held != "" {
				held[test.held] = errors.New("held")
			}
			err = taints.Missing(test.pools, held)
			if test.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, test.want)
		})
	}
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"":                       true,
		"a:k:None":               true,
		"a:k:NoSchedule":         false,
		"a:k:NoExecute":          false,
		"a:k:None,a:l:NoExecute": false,
		"b:k:NoExecute":          true,
	} {
		pools := render(t, annotated(text), compile(t, "t", namedDevices("a", "b")))
		require.Equal(t, want, Healthy(&pools[0].Devices[0]), text)
	}
	require.False(t, Healthy(&render(t, newNode("n", nil), compile(t, "t", "driver: d\ndevices: [{name: a, taints: [{key: k, effect: NoSchedule}]}]"))[0].Devices[0]))
}
