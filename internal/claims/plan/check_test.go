package plan

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/testing/claimstest"
	"github.com/kwok-dra/kwok-dra/internal/testing/configtest"
)

// fixture is a Pod whose claims all pass: own, made from a template for it, and
// shared.
type fixture struct {
	pod          *corev1.Pod
	claims       map[string]*resourcev1.ResourceClaim
	unregistered map[string]bool
	asked        []string
}

func newFixture() *fixture {
	pod := claimstest.NewPod("p", "shared")
	pod.Spec.ResourceClaims = append([]corev1.PodResourceClaim{{Name: "own", ResourceClaimTemplateName: new("t")}}, pod.Spec.ResourceClaims...)
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "own", ResourceClaimName: new("p-own-x")}}
	own := claimstest.Allocated("p-own-x", pod)
	own.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: pod.UID, Controller: new(true)}}
	return &fixture{pod: pod, claims: map[string]*resourcev1.ResourceClaim{"p-own-x": own, "shared": claimstest.Allocated("shared", pod)}, unregistered: map[string]bool{}}
}

func (f *fixture) view() *PodView {
	return &PodView{Pod: f.pod, Claims: PodClaims{Live: NewLive()}, Driver: registry{unregistered: f.unregistered}}
}

// check reads what is needed, one after the other.
func (f *fixture) check() ([]*resourcev1.ResourceClaim, error) {
	v := f.view()
	for {
		claims, err := v.checkClaims()
		need, ok := errors.AsType[*Need](err)
		if !ok || need.Claim == "" {
			return claims, err
		}
		f.asked = append(f.asked, need.Claim)
		v.Claims.Live.Claims[need.Claim] = f.claims[need.Claim]
	}
}

// registry is a Driver that knows who has registered.
type registry struct {
	Driver
	unregistered map[string]bool
}

func (r registry) Registered(driver string) (bool, error) {
	if driver == "unknown" {
		return false, &Need{Slices: driver}
	}
	return !r.unregistered[driver], nil
}

// refusals have the kubelet's error texts in the order in which it looks, from
// Manager.prepareResources in pkg/kubelet/cm/dra/manager.go and resourceclaim.Name.
var refusals = map[string]struct {
	change func(f *fixture)
	// reason is empty for an error that is no failure.
	reason, want string
	asked        []string
}{
	"claim not created yet": {
		func(f *fixture) { f.pod.Status.ResourceClaimStatuses = nil },
		ReasonNoClaim, `pod "default/p": ResourceClaim not created yet`, nil,
	},
	"no known source": {
		func(f *fixture) { f.pod.Spec.ResourceClaims[0].ResourceClaimTemplateName = nil },
		ReasonNoClaim, `pod "default/p", spec.resourceClaim "own": none of the supported fields are set`, nil,
	},
	"not found": {
		func(f *fixture) { delete(f.claims, "p-own-x") },
		ReasonNoClaim, `fetch ResourceClaim p-own-x: resourceclaims.resource.k8s.io "p-own-x" not found`,
		[]string{"p-own-x"},
	},
	"not owner, and nothing else": {
		func(f *fixture) {
			f.claims["p-own-x"] = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "p-own-x", Namespace: "default"}}
		},
		ReasonNotOwner, `ResourceClaim default/p-own-x was not created for Pod default/p (Pod is not owner)`,
		[]string{"p-own-x"},
	},
	"not reserved, nor allocated": {
		func(f *fixture) { f.claims["p-own-x"].Status = resourcev1.ResourceClaimStatus{} },
		ReasonNotReserved, `pod p (uid-of-p) is not allowed to use ResourceClaim p-own-x (uid-of-p-own-x)`,
		[]string{"p-own-x"},
	},
	"reserved for a Pod of that name": {
		func(f *fixture) { f.claims["p-own-x"].Status.ReservedFor[0].UID = "another" },
		ReasonNotReserved, `pod p (uid-of-p) is not allowed to use ResourceClaim p-own-x (uid-of-p-own-x)`,
		[]string{"p-own-x"},
	},
	"not allocated": {
		func(f *fixture) { f.claims["p-own-x"].Status.Allocation = nil },
		ReasonNotAllocated, `ResourceClaim p-own-x: not allocated`,
		[]string{"p-own-x"},
	},
	"not registered": {
		func(f *fixture) { f.unregistered["d"] = true },
		ReasonNotRegistered, `DRA driver d is not registered`,
		[]string{"p-own-x"},
	},
	"second driver not registered": {
		func(f *fixture) {
			f.unregistered["e"] = true
			claimstest.Allocate(f.claims["p-own-x"], claimstest.Device("d", "gpu-0"), claimstest.Device("e", "nic"))
		},
		ReasonNotRegistered, `DRA driver e is not registered`,
		[]string{"p-own-x"},
	},
	"slices not read": {
		func(f *fixture) { claimstest.Allocate(f.claims["p-own-x"], claimstest.Device("unknown", "gpu-0")) },
		"", `not read from the API server: {LiveView:false Claim: Slices:unknown}`,
		[]string{"p-own-x"},
	},
	"the second claim fails": {
		func(f *fixture) { f.claims["shared"].Status.Allocation = nil },
		ReasonNotAllocated, `ResourceClaim shared: not allocated`,
		[]string{"p-own-x", "shared"},
	},
	"the claim for extended resources comes last": {
		func(f *fixture) {
			f.pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"}
		},
		ReasonNoClaim, `fetch ResourceClaim extended: resourceclaims.resource.k8s.io "extended" not found`,
		[]string{"p-own-x", "shared", "extended"},
	},
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			test.change(f)
			claims, err := f.check()
			require.EqualError(t, err, test.want)
			require.Empty(t, claims, "all or none")
			require.Equal(t, test.asked, f.asked)
			var failure *Failure
			require.Equal(t, test.reason != "", errors.As(err, &failure))
			if failure != nil {
				require.Equal(t, test.reason, failure.Reason)
			}
		})
	}
}

func TestCheckPasses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(f *fixture)
		want   []string
	}{
		"all": {func(*fixture) {}, []string{"p-own-x", "shared"}},
		"no claim was needed": {
			func(f *fixture) { f.pod.Status.ResourceClaimStatuses[0].ResourceClaimName = nil },
			[]string{"shared"},
		},
		"a shared claim needs no owner": {
			func(f *fixture) {
				f.claims["shared"].OwnerReferences = []metav1.OwnerReference{{Kind: "Other", UID: "o", Controller: new(true)}}
			},
			[]string{"p-own-x", "shared"},
		},
		"extended resources": {
			func(f *fixture) {
				f.pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "extended"}
				f.claims["extended"] = claimstest.Allocated("extended", f.pod)
			},
			[]string{"p-own-x", "shared", "extended"},
		},
		"of a PodGroup": {
			func(f *fixture) {
				f.pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("g")}
				f.claims["p-own-x"].OwnerReferences = []metav1.OwnerReference{{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup", Name: "g", Controller: new(true)}}
				f.claims["p-own-x"].Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g"}}
			},
			[]string{"p-own-x", "shared"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			test.change(f)
			claims, err := f.check()
			require.NoError(t, err)
			var got []string
			for _, claim := range claims {
				got = append(got, claim.Name)
			}
			require.Equal(t, test.want, got)
		})
	}
}

// TestFailureMessage: the event reads as the kubelet's.
func TestFailureMessage(t *testing.T) {
	t.Parallel()
	require.EqualError(t, FailureMessage(Failed(ReasonNotAllocated, "ResourceClaim %s: not allocated", "c")),
		"Failed to prepare dynamic resources: prepare dynamic resources: ResourceClaim c: not allocated")
}

// TestDriverThatIsNotAsked: one all of whose devices in the claim say so need
// not be registered (KEP-5945).
func TestDriverThatIsNotAsked(t *testing.T) {
	t.Parallel()
	const all, prepare, unprepare = resourcev1.SkipNodeOperationAll, resourcev1.SkipNodeOperationNodePrepareResources, resourcev1.SkipNodeOperationNodeUnprepareResources
	for name, test := range map[string]struct {
		operations [][]resourcev1.SkipNodeOperation
		want       bool
	}{
		"none":           {[][]resourcev1.SkipNodeOperation{nil}, false},
		"all":            {[][]resourcev1.SkipNodeOperation{{all}}, true},
		"prepare":        {[][]resourcev1.SkipNodeOperation{{prepare, unprepare}}, true},
		"only unprepare": {[][]resourcev1.SkipNodeOperation{{unprepare}}, false},
		"one does not":   {[][]resourcev1.SkipNodeOperation{{all}, nil}, false},
		"each its own":   {[][]resourcev1.SkipNodeOperation{{all}, {prepare, unprepare}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			claim := f.claims["shared"]
			claim.Status.Allocation.Devices.Results = nil
			for _, operations := range test.operations {
				claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
					resourcev1.DeviceRequestAllocationResult{Driver: "skipped", SkipNodeOperations: operations})
			}
			f.unregistered["skipped"] = true
			_, err := f.check()
			require.Equal(t, test.want, err == nil, err)
		})
	}
}

// TestForPodNeeds: a plan asks for one thing at a time, and asks nobody itself.
func TestForPodNeeds(t *testing.T) {
	t.Parallel()
	f := newFixture()
	claimstest.Allocate(f.claims["shared"], claimstest.Device("unknown", "gpu-0"))
	v := f.view()
	v.Set = configtest.SetOf(t, "")
	v.Node, v.Standby = claimstest.NewNode("n"), func([]*resourcev1.ResourceClaim) bool { return false }
	for _, want := range []Need{{Claim: "p-own-x"}, {Claim: "shared"}, {Slices: "unknown"}} {
		next, err := ForPod(t.Context(), v, time.Now())
		require.NoError(t, err)
		require.Equal(t, PodPlan{Need: &want}, next)
		if want.Claim != "" {
			v.Claims.Live.Claims[want.Claim] = f.claims[want.Claim]
		}
	}
}
