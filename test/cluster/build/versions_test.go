package build

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResolve(t *testing.T) {
	tests := map[string]struct {
		given, env Versions
		want       Versions
		err        string
	}{
		"defaults":        {want: Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}},
		"minor":           {given: Versions{Kubernetes: "1.34"}, want: Versions{Kubernetes: "v1.34.4", Kwok: "v0.8.0"}},
		"minor with v":    {given: Versions{Kubernetes: "v1.37"}, want: Versions{Kubernetes: "v1.37.2", Kwok: "v0.8.0"}},
		"release":         {given: Versions{Kubernetes: "1.35.1", Kwok: "0.7.0"}, want: Versions{Kubernetes: "v1.35.1", Kwok: "v0.7.0"}},
		"release with v":  {given: Versions{Kubernetes: "v1.36.3", Kwok: "v0.6.1"}, want: Versions{Kubernetes: "v1.36.3", Kwok: "v0.6.1"}},
		"pre-release":     {given: Versions{Kubernetes: "1.37.0-rc.1"}, want: Versions{Kubernetes: "v1.37.0-rc.1", Kwok: "v0.8.0"}},
		"environment":     {env: Versions{Kubernetes: "1.35", Kwok: "0.7.0"}, want: Versions{Kubernetes: "v1.35.4", Kwok: "v0.7.0"}},
		"given wins":      {given: Versions{Kubernetes: "1.34"}, env: Versions{Kubernetes: "1.35", Kwok: "0.7.0"}, want: Versions{Kubernetes: "v1.34.4", Kwok: "v0.7.0"}},
		"unknown minor":   {given: Versions{Kubernetes: "1.99"}, err: "one of the minors 1.34, 1.35, 1.36, 1.37"},
		"other major":     {given: Versions{Kubernetes: "2.0.0"}, err: `resolve Kubernetes version "v2.0.0"`},
		"a path":          {given: Versions{Kubernetes: "1.36.3/../.."}, err: "resolve Kubernetes version"},
		"no kwok release": {given: Versions{Kwok: "main"}, err: `resolve kwok version "vmain"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv(KubernetesVersionEnv, test.env.Kubernetes)
			t.Setenv(KwokVersionEnv, test.env.Kwok)
			got, err := test.given.Resolve()
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			again, err := got.Resolve()
			require.NoError(t, err)
			require.Equal(t, got, again, "resolved versions resolve to themselves")
		})
	}
}

func TestUnits(t *testing.T) {
	t.Parallel()
	names := func(v Versions) (names []string) {
		for _, u := range compiledUnits(v) {
			names = append(names, u.String())
		}
		return names
	}
	require.Equal(t, []string{
		"kubernetes v1.36.3 (kube-apiserver, kube-controller-manager, kube-scheduler, kubectl)",
		"etcd v3.6.16 (etcd)",
		"kwok v0.8.0 (kwok, kwokctl)",
	}, names(Versions{Kubernetes: "v1.36.3", Kwok: "v0.8.0"}))
	require.Equal(t, []string{
		"kubernetes v1.34.4 (kube-apiserver, kube-controller-manager, kube-scheduler, kubectl)",
		"etcd v3.6.16 (etcd)",
		"kwok v0.8.0 (kwok, kwokctl)",
		"kwok v0.7.0 (kwok)",
	}, names(Versions{Kubernetes: "v1.34.4", Kwok: "v0.7.0"}))
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	v := Versions{Kubernetes: "v1.34.4", Kwok: "v0.7.0"}
	p := newPrograms("/cache", v, compiledUnits(v))
	require.Equal(t, []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "kwokctl"}, p.Names())
	require.Equal(t, "/cache/kwok-v0.7.0/kwok", p.Path("kwok"))
	require.Equal(t, "/cache/kwok-v0.8.0/kwokctl", p.Path("kwokctl"))
	require.Empty(t, p.Path("kubelet"))
}
