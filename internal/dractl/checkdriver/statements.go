package checkdriver

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kwok-dra/kwok-dra/internal/extensions/realdrivers/kubelet/plugin"
	"github.com/kwok-dra/kwok-dra/internal/extensions/util/untrusted"
)

// statement is something that is true of every driver.
type statement struct {
	id, says, source string
	// run returns what was seen that contradicts it.
	run func(ctx context.Context, w *world) error
}

// Where statements are from.
const (
	fromRegistration = "k8s.io/kubelet pluginregistration/v1 api.proto"
	fromProto        = "k8s.io/kubelet dra/v1 api.proto"
	fromKEP          = "KEP-4381"
	fromPrepare      = "kubeletplugin.DRAPlugin.PrepareResourceClaims"
	fromUnprepare    = "kubeletplugin.DRAPlugin.UnprepareResourceClaims"
	fromRolling      = "kubeletplugin.RollingUpdate"
	fromSlice        = "k8s.io/api resource/v1 ResourceSlice"
	fromCDI          = "Container Device Interface specification"
)

// slicesDeletedID is the statement that takes longer than others.
const slicesDeletedID = "slices-deleted"

// statements are in the order in which they are tried. The last one stops the driver.
var statements = slices.Concat(
	publishingStatements,
	prepareStatements,
	unprepareStatements,
	cdiStatements,
	restartStatements,
	republishStatements,
	[]statement{
		{"rolling-update", "works as two processes, each of which takes over when the other ends", fromRolling, func(ctx context.Context, w *world) error {
			if !hasPlaceholder(w.arguments, instancePlaceholder) {
				return skipped("COMMAND has no {instance}")
			}
			if _, err := w.awaitDevices(ctx); err != nil {
				return err
			}
			gap, err := w.watchForGap(ctx)
			if err != nil {
				return err
			}
			first := w.calledPlugin()
			second, err := w.startProcess(ctx, secondInstance)
			if err != nil {
				return err
			}
			if err := w.awaitTakeover(ctx, second.Err, func(now *plugin.Plugin) bool { return now != first && w.kubelet.Len() == 2 }); err != nil {
				return errors.Join(fmt.Errorf("second process beside the first: %w", err), second.Kill())
			}
			if err := errors.Join(waitQuietly(ctx), second.Stop(grace)); err != nil {
				return err
			}
			if err := w.awaitTakeover(ctx, w.process.Err, func(now *plugin.Plugin) bool { return now == first && w.kubelet.Len() == 1 }); err != nil {
				return fmt.Errorf("first process when the second has ended: %w", err)
			}
			return gap()
		}},
		// Stop fails if a process of the group is left. A driver that has just started may not listen to
		// signals yet.
		{"stops", "ends after SIGTERM, without processes and sockets left", fromRegistration, func(ctx context.Context, w *world) error {
			if err := waitQuietly(ctx); err != nil {
				return err
			}
			if err := w.stopDriver(); err != nil {
				return err
			}
			left, err := untrusted.ReadDir(w.kubelet.root.Registry(), mostLeft)
			if err != nil {
				return fmt.Errorf("look for sockets: %w", err)
			}
			names := make([]string, len(left))
			for i, entry := range left {
				names[i] = entry.Name()
			}
			if len(names) > 0 {
				return errors.New("it has left in the registry: " + strings.Join(names, ", "))
			}
			return nil
		}},
	},
)

// chooseStatements returns the statements whose ids match an expression.
func chooseStatements(expression string) ([]statement, error) {
	matches, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("parse --only %q: %w", expression, err)
	}
	var chosen []statement
	var ids []string
	for _, s := range statements {
		ids = append(ids, s.id)
		if matches.MatchString(s.id) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("parse --only %q: matches none of %s", expression, strings.Join(ids, ", "))
	}
	return chosen, nil
}

// tryStatement tries one statement. What fails leaves no trace for the next one.
func (w *world) tryStatement(ctx context.Context, s statement) error {
	timeout := w.timeout
	if s.id == slicesDeletedID {
		// A driver may trust what it has written itself for a while, as those with kubeletplugin up to
		// 0.36 do, before it sees that slices are gone.
		timeout *= 3
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := w.ensureRunning(ctx)
	if err == nil {
		err = s.run(ctx, w)
	}
	cleaning, done := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer done()
	for _, message := range w.prepared {
		if found := w.calledPlugin(); found != nil {
			_, _ = found.Unprepare(cleaning, []*drav1.Claim{message}) // other statements say whether the driver does its part
		}
	}
	clear(w.prepared)
	if left := w.deleteClaims(cleaning); err == nil {
		err = left
	}
	if _, ok := errors.AsType[skipped](err); err != nil && !ok {
		_ = w.stopDriver() // the next statement has a new process; this one has failed already
	}
	return err
}
