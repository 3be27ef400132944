package reading

import (
	"context"
	"errors"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/internal/dractl/steps"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/groupclient"
)

// GetClaim gets a claim by its name, with its managed fields. The error for one that does not exist names the claim that may be
// meant, unless the API server serves no claims at all.
func (r *Reader) GetClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	claim, err := r.client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		claims, err := r.Claims(ctx, namespace)
		if err != nil {
			return nil, err
		}
		if r.IsUnserved() {
			return nil, groupclient.ErrUnserved
		}
		return nil, steps.ExplainMissing(namespace, name, claims)
	case apierrors.IsForbidden(err):
		return nil, errors.New(Unseen{Verb: "get", Resource: "resourceclaims", Namespace: namespace, IsForbidden: true}.Describe())
	case err != nil:
		return nil, fmt.Errorf("get resourceclaim %s/%s: %w", namespace, name, err)
	}
	return claim, nil
}

// IsUnserved reports whether the API server does not serve something that was asked for.
func (r *Reader) IsUnserved() bool {
	return slices.ContainsFunc(r.Unseen(), func(unseen Unseen) bool { return !unseen.IsForbidden })
}
