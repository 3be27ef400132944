package slices

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kwok-dra/kwok-dra/pkg/loop"
)

// existsLive asks whether there is a fake node that the cache does not have. The
// slices that another replica has just made for one may be seen before it.
func (p *Publisher) existsLive(ctx context.Context, name string) (bool, error) {
	node, err := p.live.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get node %s: %w", name, err)
	}
	return p.nodes.Fake(node), nil
}

// watchedErr is what remains to be done about a node that another replica acts for
// and reports on.
func watchedErr(err error) error {
	if _, refused := errors.AsType[*layoutError](err); refused {
		return loop.Terminal(err)
	}
	return err
}
