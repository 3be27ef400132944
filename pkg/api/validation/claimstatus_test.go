package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kwok-dra/kwok-dra/internal/util/fieldcheck"
	"github.com/kwok-dra/kwok-dra/pkg/api/defaults"
	"github.com/kwok-dra/kwok-dra/pkg/api/v1alpha1"
)

// addresses are n different addresses.
func addresses(n int) []string {
	ips := make([]string, n)
	for i := range ips {
		ips[i] = fmt.Sprintf("10.0.0.%d/24", i)
	}
	return ips
}

// TestClaimStatusValidation has the API server's rules for AllocatedDeviceStatus
// and NetworkDeviceData.
func TestClaimStatusValidation(t *testing.T) {
	t.Parallel()
	data := func(text string) v1alpha1.ClaimStatus {
		return v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusReady, Data: &runtime.RawExtension{Raw: []byte(text)}}
	}
	network := func(data resourcev1.NetworkDeviceData) v1alpha1.ClaimStatus {
		return v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusNone, NetworkData: &data}
	}
	ids := func(ids ...string) v1alpha1.ClaimStatus {
		return v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusReady, CDIDeviceIDs: ids}
	}
	large := func(size int) string { return `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}` }
	for name, test := range map[string]struct {
		given v1alpha1.ClaimStatus
		want  []string
	}{
		"Ready":                    {v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusReady}, nil},
		"None":                     {v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusNone}, nil},
		"no mode":                  {v1alpha1.ClaimStatus{}, []string{`claimStatus.mode: Unsupported value: "": supported values: "Ready", "None"`}},
		"another mode":             {v1alpha1.ClaimStatus{Mode: "ready"}, []string{`claimStatus.mode: Unsupported value: "ready": supported values: "Ready", "None"`}},
		"data":                     {data(`{"a": {"b": [1, "{{ x }}"]}}`), nil},
		"empty data":               {data(`{}`), nil},
		"data as a template":       {data(`"{{ toJson .Device }}"`), nil},
		"data as text":             {data(`"hello"`), []string{`claimStatus.data: Invalid value: "hello": must be an object, or a template that yields one`}},
		"data as a list":           {data(`[1]`), []string{`claimStatus.data: Invalid value: "[1]": must be an object, or a template that yields one`}},
		"data as a number":         {data(`1`), []string{`claimStatus.data: Invalid value: "1": must be an object, or a template that yields one`}},
		"data as null":             {data(`null`), []string{`claimStatus.data: Invalid value: "null": must be an object, or a template that yields one`}},
		"no JSON":                  {data(`{`), []string{`claimStatus.data: Invalid value: "{": unexpected end of JSON input`}},
		"largest data":             {data(large(10240)), nil},
		"too large":                {data(large(10241)), []string{`claimStatus.data: Too long: may not be more than 10240 bytes`}},
		"CDI ids":                  {ids("k8s.d/gpu=0", "{{ x }}"), nil},
		"empty CDI id":             {ids("k8s.d/gpu=0", ""), []string{`claimStatus.cdiDeviceIDs[1]: Required value: for example k8s.gpu.example.com/gpu=0`}},
		"network":                  {network(resourcev1.NetworkDeviceData{InterfaceName: "eth0", IPs: []string{"192.0.2.5/24", "2001:db8::5/64"}, HardwareAddress: "00:00:5e:00:53:01"}), nil},
		"empty network":            {network(resourcev1.NetworkDeviceData{}), nil},
		"longest name":             {network(resourcev1.NetworkDeviceData{InterfaceName: strings.Repeat("x", 256)}), nil},
		"name too long":            {network(resourcev1.NetworkDeviceData{InterfaceName: strings.Repeat("x", 257)}), []string{`must be at most 256 characters, is 257`}},
		"long template":            {network(resourcev1.NetworkDeviceData{InterfaceName: "{{ " + strings.Repeat("x", 300) + " }}", HardwareAddress: "{{ " + strings.Repeat("x", 300) + " }}"}), nil},
		"longest hardware address": {network(resourcev1.NetworkDeviceData{HardwareAddress: strings.Repeat("x", 128)}), nil},
		"hardware address too long": {
			network(resourcev1.NetworkDeviceData{HardwareAddress: strings.Repeat("x", 129)}),
			[]string{`claimStatus.networkData.hardwareAddress: Invalid value: "` + strings.Repeat("x", 129) + `": must be at most 128 characters, is 129`},
		},
		"most addresses":       {network(resourcev1.NetworkDeviceData{IPs: addresses(16)}), nil},
		"too many addresses":   {network(resourcev1.NetworkDeviceData{IPs: addresses(17)}), []string{`claimStatus.networkData.ips: Too many: 17: must have at most 16 items`}},
		"address without mask": {network(resourcev1.NetworkDeviceData{IPs: []string{"192.0.2.5"}}), []string{`claimStatus.networkData.ips[0]: Invalid value: "192.0.2.5": must be a valid address in CIDR form`}},
		"not canonical":        {network(resourcev1.NetworkDeviceData{IPs: []string{"2001:DB8::5/64"}}), []string{`claimStatus.networkData.ips[0]: Invalid value: "2001:DB8::5/64": must be in canonical form`}},
		"address twice":        {network(resourcev1.NetworkDeviceData{IPs: []string{"192.0.2.5/24", "192.0.2.5/24"}}), []string{`claimStatus.networkData.ips[1]: Duplicate value: "192.0.2.5/24"`}},
		"templates may be one": {network(resourcev1.NetworkDeviceData{IPs: []string{"{{ x }}", "{{ x }}"}}), nil},
		"several problems": {
			v1alpha1.ClaimStatus{Mode: "x", CDIDeviceIDs: []string{""}, NetworkData: &resourcev1.NetworkDeviceData{IPs: []string{"x"}}},
			[]string{"claimStatus.mode", "claimStatus.cdiDeviceIDs[0]", "claimStatus.networkData.ips[0]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := fieldcheck.New(field.NewPath("claimStatus"))
			validateClaimStatus(&test.given, at)
			errs := at.Errors()
			require.Len(t, errs, len(test.want), "%v", errs)
			for i, want := range test.want {
				require.ErrorContains(t, errs[i], want)
			}
		})
	}
}

func TestClaimStatusDefaults(t *testing.T) {
	t.Parallel()
	template := validTemplate()
	defaults.SetResourcePoolTemplate(template)
	require.Equal(t, &v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusReady}, template.Spec.ClaimStatus)
	require.Equal(t, v1alpha1.HealthUnknown, template.Spec.Health)
	require.Empty(t, ValidateResourcePoolTemplate(template))

	template = validTemplate()
	template.Spec.ClaimStatus, template.Spec.Health = &v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusNone, CDIDeviceIDs: []string{"x"}}, v1alpha1.HealthReport
	defaults.SetResourcePoolTemplate(template)
	require.Equal(t, &v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusNone, CDIDeviceIDs: []string{"x"}}, template.Spec.ClaimStatus)
	require.Equal(t, v1alpha1.HealthReport, template.Spec.Health)

	template.Spec.Health = "Sick"
	require.ErrorContains(t, ValidateResourcePoolTemplate(template).ToAggregate(), `spec.health: Unsupported value: "Sick"`)
}

// TestClaimStatusInYAML: null is as if it were not there.
func TestClaimStatusInYAML(t *testing.T) {
	t.Parallel()
	var status v1alpha1.ClaimStatus
	require.NoError(t, yaml.UnmarshalStrict([]byte("mode: None\ndata: null\nnetworkData: null\n"), &status))
	require.Equal(t, v1alpha1.ClaimStatus{Mode: v1alpha1.ClaimStatusNone}, status)
}
