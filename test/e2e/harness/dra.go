package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kwok-dra/kwok-dra/internal/dractl/cli"
	"github.com/kwok-dra/kwok-dra/internal/kubectldra"
)

// KubectlDRA runs kubectl dra in this process, and returns what it says, and whether the answer is yes.
func KubectlDRA(ctx context.Context, kubeconfig, input string, arguments ...string) (answer string, isYes bool, err error) {
	var out, errOut bytes.Buffer
	command := kubectldra.New(genericiooptions.IOStreams{In: strings.NewReader(input), Out: &out, ErrOut: &errOut})
	command.SetArgs(append([]string{"--kubeconfig", kubeconfig}, arguments...))
	err = command.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, cli.ErrNegative) {
		return "", false, fmt.Errorf("run kubectl dra %s: %w\n%s", strings.Join(arguments, " "), err, errOut.String())
	}
	return out.String(), err == nil, nil
}
