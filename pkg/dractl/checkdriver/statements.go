package checkdriver

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
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
var statements = []statement{
	{"registers", "registers within 30 s, with a service that the kubelet supports", fromRegistration, registers},
	{"publishes", "publishes complete pools for the node, which owns them", fromSlice, publishes},
	{"prepare-answers", "answers with devices of the allocation only", fromProto, prepareAnswers},
	{"prepare-twice", "gives the same answer to the same claim", fromPrepare, prepareTwice},
	{"prepare-batch", "prepares two claims in one call", fromProto, prepareBatch},
	{"prepare-concurrent", "prepares claims in calls at the same time", fromKEP, prepareConcurrent},
	{"prepare-missing", "fails for a claim that does not exist, after which others can be prepared", fromProto, prepareMissing},
	{"prepare-recreated", "prepares a claim with the name of an earlier one as a new one", fromKEP, prepareRecreated},
	{"prepare-taken", "refuses to prepare a device that is prepared for another claim", fromPrepare, prepareTaken},
	{"unprepare-deleted", "unprepares a claim that is deleted", fromUnprepare, unprepareDeleted},
	{"unprepare-twice", "succeeds when it unprepares a claim again", fromUnprepare, unprepareTwice},
	{"unprepare-unknown", "succeeds when it unprepares a claim that it has never prepared", fromUnprepare, unprepareUnknown},
	{"cdi-names", "names CDI devices as vendor/class=name", fromCDI, cdiNames},
	{"cdi-resolves", "has a CDI spec with each device that it names", fromCDI, cdiResolves},
	{"cdi-removed", "removes the CDI specs of a claim that it unprepares", fromUnprepare, cdiRemoved},
	{"restart-slices", "registers after a restart, and writes no slice that is as it should be", fromSlice, restartSlices},
	{"restart-prepare", "gives the same answer to the same claim after a restart", fromPrepare, restartPrepare},
	{"kill-prepare", "gives the same answer to the same claim after it was killed", fromPrepare, killPrepare},
	{"reboot-prepare", "writes the CDI specs of a claim again after a reboot, which empties their folder", fromPrepare, rebootPrepare},
	{"restart-unprepare", "unprepares a claim after a restart", fromUnprepare, restartUnprepare},
	{"slices-away", "publishes slices again that the kubelet has deleted while the driver was away", fromKEP, slicesAway},
	{slicesDeletedID, "publishes slices again that a kubelet has deleted at its start", fromKEP, slicesDeleted},
	{"rolling-update", "works as two processes, each of which takes over when the other ends", fromRolling, rollingUpdate},
	{"stops", "ends after SIGTERM, without processes and sockets left", fromRegistration, stops},
}

// choose returns the statements whose ids match an expression.
func choose(expression string) ([]statement, error) {
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

// patience is how long a statement may take. A driver may trust what it has written itself for
// a while, as those with kubeletplugin up to 0.36 do, before it sees that slices are gone.
func (s statement) patience(timeout time.Duration) time.Duration {
	if s.id == slicesDeletedID {
		return 3 * timeout
	}
	return timeout
}

// try tries one statement. What fails leaves no trace for the next one.
func (w *world) try(ctx context.Context, s statement) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience(w.timeout))
	defer cancel()
	err := w.up(ctx)
	if err == nil {
		err = s.run(ctx, w)
	}
	release, done := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer done()
	if left := w.release(release); err == nil {
		err = left
	}
	if err != nil && !isSkipped(err) {
		_ = w.stop() // the next statement has a new process; this one has failed already
	}
	return err
}
