package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForeign says what to do with objects that are for someone else.
func TestForeign(t *testing.T) {
	t.Parallel()
	const rest = "; kwok-dra reads ResourcePoolTemplate and KwokDRAConfiguration here"
	for text, want := range map[string]string{
		"apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: s}": `test, document 1: Stage "s": kind: this is a Stage: kubectl apply it` + rest,
		"apiVersion: resource.k8s.io/v1\nkind: DeviceClass":                    "test, document 1: kind: this is a DeviceClass: kubectl apply it" + rest,
		"apiVersion: v1\nkind: ConfigMap":                                      "test, document 1: kind: this is a ConfigMap: kubectl apply it, and name it with --config-map" + rest,
		"apiVersion: dra.kwok.x-k8s.io/v1\nkind: ResourcePoolTemplate":         `test, document 1: apiVersion: Unsupported value: "dra.kwok.x-k8s.io/v1": must be dra.kwok.x-k8s.io/v1alpha1`,
		"apiVersion: dra.kwok.x-k8s.io/v1alpha2\nkind: ResourcePoolTemplates":  `test, document 1: apiVersion: Unsupported value: "dra.kwok.x-k8s.io/v1alpha2": must be dra.kwok.x-k8s.io/v1alpha1`,
		"apiVersion: dra.kwok.x-k8s.io/v1alpha1\nkind: Stage":                  `test, document 1: kind: Unsupported value: "Stage": must be ResourcePoolTemplate or KwokDRAConfiguration`,
	} {
		_, err := Decode("test", []byte(text))
		require.EqualError(t, err, want)
	}
}
